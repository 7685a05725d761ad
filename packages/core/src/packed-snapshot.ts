import { knowColumns, type PlanColumns, planColumns, sharedFloats, sharedWords, startsOf } from "./plan-columns.ts";
import type { ClusterSnapshot, Reserve, SnapshotCell, SnapshotEngine } from "./snapshot.ts";

/**
 * A snapshot over shared memory: another thread takes it without a copy of what is large, and reads an engine's definition
 * or a cell's lists when they are asked for. Its rings are left out: a routing table has them.
 */
export interface PackedSnapshot {
  readonly head: Omit<ClusterSnapshot, "engines" | "cells">;
  readonly columns: PlanColumns;
  /** Definitions of the engines one after the other, JSON in UTF-8, and where each begins. */
  readonly definitions: Uint8Array;
  readonly definitionAt: Uint32Array;
  /** What the plan says of each engine beside the columns. */
  readonly plannedReady: Float64Array;
  readonly rttMs: Float64Array;
  readonly priceMs: Float64Array;
  readonly worthMs: Float64Array;
  readonly cells: readonly PackedCell[];
  /** Five a pair. */
  readonly addends: Float64Array;
  /** Reserves of all cells: where each cell's begin, which engines, and two numbers each. */
  readonly reserveAt: Uint32Array;
  readonly reserveEngine: Uint32Array;
  readonly reserveNumbers: Float64Array;
}

type PackedCell = Omit<SnapshotCell, "engines" | "weights" | "expectedMs" | "addends" | "reserves" | "ring">;

const ADDENDS = 5;

/** @param snapshot a checked one */
export function packSnapshot(snapshot: ClusterSnapshot): PackedSnapshot {
  const { engines, cells, ...head } = snapshot;
  const columns = planColumns(snapshot);
  const each = Object.values(engines);
  const texts = each.map((engine) => Buffer.from(JSON.stringify(definitionOf(engine))));
  const definitionAt = startsOf(texts.map(({ length }) => length));
  const definitions = new Uint8Array(new SharedArrayBuffer(definitionAt.at(-1)!));
  for (const [at, text] of texts.entries()) definitions.set(text, definitionAt[at]);
  const indexOf = new Map(columns.engines.map((id, index) => [id, index]));
  const reserves = cells.flatMap((cell) => cell.reserves);
  return {
    head,
    columns,
    definitions,
    definitionAt,
    plannedReady: sharedFloats(each.map((engine) => engine.plannedReady)),
    rttMs: sharedFloats(each.map((engine) => engine.rttMs)),
    priceMs: sharedFloats(each.map((engine) => engine.priceMs)),
    worthMs: sharedFloats(each.map((engine) => engine.worthMs)),
    cells: cells.map(({ engines, weights, expectedMs, addends, reserves, ring, ...cell }) => cell),
    addends: sharedFloats(cells.flatMap((cell) => cell.addends.flat())),
    reserveAt: startsOf(cells.map((cell) => cell.reserves.length)),
    reserveEngine: sharedWords(reserves.map(({ engine }) => indexOf.get(engine)!)),
    reserveNumbers: sharedFloats(reserves.flatMap(({ spareWps, reducedCostMs }) => [spareWps, reducedCostMs])),
  };
}

const unpacked = new WeakMap<PackedSnapshot, ClusterSnapshot>();

/** The snapshot again, read from the packed one as far as it is looked at. One for each packed snapshot of a thread. */
export function unpackSnapshot(packed: PackedSnapshot): ClusterSnapshot {
  let snapshot = unpacked.get(packed);
  if (snapshot === undefined) {
    const { engines } = packed.columns;
    snapshot = {
      ...packed.head,
      engines: Object.fromEntries(engines.map((id, index) => [id, lazyEngine(packed, index)])),
      cells: packed.cells.map((cell, index) => new LazyCell(packed, cell, index)),
    };
    knowColumns(snapshot, packed.columns);
    unpacked.set(packed, snapshot);
  }
  return snapshot;
}

/** What a fleet file says of an engine: the same from one plan to the next, for the most part. */
type Definition = Omit<SnapshotEngine, keyof Planned>;
type Planned = Pick<
  SnapshotEngine,
  "rttMs" | "plannedFactor" | "plannedReady" | "loadWps" | "capacityWps" | "priceMs" | "worthMs"
>;

function definitionOf(engine: SnapshotEngine): Definition {
  const { rttMs, plannedFactor, plannedReady, loadWps, capacityWps, priceMs, worthMs, ...definition } = engine;
  return definition;
}

/** A `SnapshotEngine` whose definition is read when a part of it is first asked for; the rest of its keys are below. */
class LazyEngine implements Planned {
  readonly #packed: PackedSnapshot;
  readonly #index: number;
  #definition: Definition | null = null;

  constructor(packed: PackedSnapshot, index: number) {
    this.#packed = packed;
    this.#index = index;
  }

  get definition(): Definition {
    if (this.#definition === null) {
      const { definitions, definitionAt } = this.#packed;
      const [start, end] = [definitionAt[this.#index]!, definitionAt[this.#index + 1]!];
      // No decoder reads shared memory.
      const text = Buffer.from(definitions.subarray(start, end)).toString();
      this.#definition = JSON.parse(text) as Definition;
    }
    return this.#definition;
  }

  get rttMs(): number {
    return this.#packed.rttMs[this.#index]!;
  }

  get plannedFactor(): number {
    return this.#packed.columns.plannedFactor[this.#index]!;
  }

  get plannedReady(): number {
    return this.#packed.plannedReady[this.#index]!;
  }

  get loadWps(): number {
    return this.#packed.columns.loadWps[this.#index]!;
  }

  get capacityWps(): number {
    return this.#packed.columns.capacityWps[this.#index]!;
  }

  get priceMs(): number {
    return this.#packed.priceMs[this.#index]!;
  }

  get worthMs(): number {
    return this.#packed.worthMs[this.#index]!;
  }
}

/** Each key of a definition, named for the compiler to find one that is missing. */
const DEFINITION_KEYS: Record<keyof Definition, true> = {
  url: true,
  kind: true,
  region: true,
  models: true,
  capabilities: true,
  residency: true,
  compute: true,
  maxContextTokens: true,
  maxStreams: true,
  replicas: true,
  adminState: true,
  health: true,
  latency: true,
};
for (const key of Object.keys(DEFINITION_KEYS) as (keyof Definition)[]) {
  Object.defineProperty(LazyEngine.prototype, key, {
    get(this: LazyEngine) {
      return this.definition[key];
    },
  });
}

function lazyEngine(packed: PackedSnapshot, index: number): SnapshotEngine {
  return new LazyEngine(packed, index) as Planned as SnapshotEngine;
}

/** A cell whose lists are read when they are first asked for. */
class LazyCell implements SnapshotCell {
  readonly cluster: string;
  readonly class: string;
  readonly demandRps: number;
  readonly work: number;
  readonly shed: number;
  readonly priceMs: number;
  readonly streamLimit: number;
  readonly pin?: NonNullable<SnapshotCell["pin"]>;
  readonly ring = "";
  readonly #packed: PackedSnapshot;
  readonly #index: number;
  #engines: string[] | null = null;
  #weights: number[] | null = null;
  #expectedMs: number[] | null = null;
  #addends: SnapshotCell["addends"] | null = null;
  #reserves: Reserve[] | null = null;

  constructor(packed: PackedSnapshot, cell: PackedCell, index: number) {
    this.cluster = cell.cluster;
    this.class = cell.class;
    this.demandRps = cell.demandRps;
    this.work = cell.work;
    this.shed = cell.shed;
    this.priceMs = cell.priceMs;
    this.streamLimit = cell.streamLimit;
    if (cell.pin !== undefined) this.pin = cell.pin;
    this.#packed = packed;
    this.#index = index;
  }

  get engines(): string[] {
    const { engines, pairEngine } = this.#packed.columns;
    this.#engines ??= Array.from(this.#pairs(pairEngine), (index) => engines[index]!);
    return this.#engines;
  }

  get weights(): number[] {
    this.#weights ??= Array.from(this.#pairs(this.#packed.columns.weights));
    return this.#weights;
  }

  get expectedMs(): number[] {
    this.#expectedMs ??= Array.from(this.#pairs(this.#packed.columns.expectedMs));
    return this.#expectedMs;
  }

  get addends(): SnapshotCell["addends"] {
    const { columns, addends } = this.#packed;
    this.#addends ??= Array.from(this.#pairs(columns.pairEngine), (_, pair) => {
      const at = ADDENDS * (columns.pairAt[this.#index]! + pair);
      return [addends[at]!, addends[at + 1]!, addends[at + 2]!, addends[at + 3]!, addends[at + 4]!];
    });
    return this.#addends;
  }

  get reserves(): Reserve[] {
    const { columns, reserveAt, reserveEngine, reserveNumbers } = this.#packed;
    const start = reserveAt[this.#index]!;
    this.#reserves ??= Array.from(reserveEngine.subarray(start, reserveAt[this.#index + 1]), (engine, at) => ({
      engine: columns.engines[engine]!,
      spareWps: reserveNumbers[2 * (start + at)]!,
      reducedCostMs: reserveNumbers[2 * (start + at) + 1]!,
    }));
    return this.#reserves;
  }

  #pairs<Column extends Uint32Array | Float64Array>(column: Column): Column {
    const { pairAt } = this.#packed.columns;
    return column.subarray(pairAt[this.#index], pairAt[this.#index + 1]) as Column;
  }
}
