import { type ClusterSnapshot, decodeRing, type SnapshotCell, type SnapshotEngine } from "@guidevane/core";
import { NEEDS_ALL, USE_OF } from "./facts.ts";
import { countSlots } from "./ring.ts";
import type { SlotRegistry } from "./slots.ts";
import { type CandidateRow, type Columns, ColumnWriter, NO_CELL, NO_LIMIT } from "./table-columns.ts";
import { xxh32 } from "./xxh32.ts";

/**
 * A snapshot made ready for routing: immutable plain data, its numbers in columns that native code reads as they are. It
 * can be made on one thread and sent to others, which then share the columns.
 */
export interface RoutingTable {
  readonly version: number;
  readonly epoch: number;
  /** In the order that indices count in. */
  readonly models: readonly string[];
  readonly classes: readonly string[];
  readonly residencies: readonly string[];
  /** State slot of each engine of the snapshot. */
  readonly engineSlots: ReadonlyMap<string, number>;
  /** Per class: the cell's in-flight row; -1 for a class without a cell. */
  readonly inFlightRows: readonly number[];
  readonly columns: Columns;
  /** The process's number of it in native code, where `RouterFactory.share` has loaded it there. */
  readonly nativeId?: number;
}

/** A table whose slots are held for it. */
export interface HeldTable {
  readonly table: RoutingTable;
  /** Lets go of the slots. Once, when no request routes by the table any more. */
  release(): void;
}

/** The slots of a snapshot's engines, by id, and the rows of its cells, by `cellKey`. */
export interface TableSlots {
  readonly engines: ReadonlyMap<string, number>;
  readonly cells: ReadonlyMap<string, number>;
}

/** What `HEAD.residency` says for a header's value. */
export function residencyWord({ residencies }: RoutingTable, name: string): number {
  const index = residencies.indexOf(name);
  return 1 + (index < 0 ? residencies.length : index);
}

/** What `HEAD.classNamed` says for a header's value; 0 for a class that the snapshot doesn't have. */
export function classWord({ classes }: RoutingTable, name: string): number {
  return 1 + classes.indexOf(name);
}

/**
 * Compiles a checked snapshot, all on this thread: it takes some milliseconds per hundred cells. Where requests are routed
 * on it too, hold the slots here (`holdSlots`) and have another thread do the rest (`translate`).
 *
 * @throws GuidevaneError `bad_snapshot` when the process has no slot left for an engine or a cell
 */
export function compileTable(snapshot: ClusterSnapshot, registry: SlotRegistry): HeldTable {
  const { slots, release } = holdSlots(namesOf(snapshot), registry);
  return { table: translate(snapshot, slots), release };
}

/** Names of a snapshot that need slots. */
export interface SnapshotNames {
  readonly engines: readonly string[];
  readonly cells: readonly string[];
}

export function namesOf({ engines, cells, cluster }: ClusterSnapshot): SnapshotNames {
  const own = cells.filter((cell) => cell.cluster === cluster).map(cellKey);
  return { engines: Object.keys(engines), cells: unique(own) };
}

/**
 * Holds the slots and rows that a table needs, until `release`.
 *
 * @throws GuidevaneError `bad_snapshot` when the process has no slot left for an engine or a cell
 */
export function holdSlots(names: SnapshotNames, registry: SlotRegistry): { slots: TableSlots; release(): void } {
  const held = new Holdings(registry);
  try {
    const slots = {
      engines: new Map(names.engines.map((id) => [id, held.engine(id)] as const)),
      cells: new Map(names.cells.map((key) => [key, held.cell(key)] as const)),
    };
    return { slots, release: () => held.release() };
  } catch (error) {
    held.release();
    throw error;
  }
}

/** A snapshot as a table, on any thread: everything but the slots. */
export function translate(snapshot: ClusterSnapshot, slots: TableSlots): RoutingTable {
  const classEntries = Object.entries(snapshot.classes);
  const engineEntries = Object.entries(snapshot.engines);
  const classes = classEntries.map(([name]) => name);
  const models = unique([
    ...classEntries.map(([, { model }]) => model),
    ...engineEntries.flatMap(([, engine]) => engine.models),
  ]);
  const residencies = unique([
    ...classEntries.flatMap(([, { needs }]) => needs.residency),
    ...engineEntries.flatMap(([, { residency }]) => (residency === null ? [] : [residency])),
  ]);
  const facts = new Map(engineEntries.map(([id, engine]) => [id, factsOf(id, engine, slots, residencies)]));
  const inFlightRows: number[] = classes.map(() => -1);

  const writer = new ColumnWriter();
  const cellAt = new Map<string, number>();
  for (const [index, cell] of snapshot.cells.entries()) {
    if (cell.cluster !== snapshot.cluster || cellAt.has(cell.class)) continue;
    const row = slots.cells.get(cellKey(cell))!;
    inFlightRows[classes.indexOf(cell.class)] = row;
    cellAt.set(cell.class, writeCell(writer, cell, index, row, facts));
  }
  writer.classes(
    classEntries.map(([name, { model, needs }]) => ({
      model: models.indexOf(model),
      uses: needs.capabilities.reduce((bits, each) => bits | USE_OF[each], 0),
      residencies: needs.residency.map((each) => 1 + residencies.indexOf(each)),
      cell: cellAt.get(name) ?? NO_CELL,
    })),
  );
  writer.models(models.map((name) => classEntries.flatMap(([, { model }], index) => (model === name ? [index] : []))));
  const aliases = Object.entries(snapshot.aliases ?? {}).filter(
    ([alias, model]) => models.includes(model) && !models.includes(alias),
  );
  writer.names([
    ...models.map((name, model) => ({ name: asInJson(name), model })),
    ...aliases.map(([alias, model]) => ({ name: asInJson(alias), model: models.indexOf(model) })),
  ]);
  return {
    version: snapshot.version,
    epoch: snapshot.epoch,
    models,
    classes,
    residencies,
    engineSlots: slots.engines,
    inFlightRows,
    columns: writer.finish(),
  };
}

/** A body's name is compared as it was sent, without its quotes. */
function asInJson(name: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(name).slice(1, -1));
}

function cellKey(cell: Pick<SnapshotCell, "cluster" | "class">): string {
  return `${cell.cluster}\n${cell.class}`;
}

/** What is the same of an engine in every cell. */
type EngineRow = Omit<CandidateRow, "weight" | "part">;

function factsOf(id: string, engine: SnapshotEngine, slots: TableSlots, residencies: readonly string[]): EngineRow {
  return {
    slot: slots.engines.get(id)!,
    idHash: idHash(id),
    lacks: lacks(engine),
    maxContextTokens: engine.maxContextTokens === null ? NO_LIMIT : Math.floor(engine.maxContextTokens),
    residency: engine.residency === null ? 0 : 1 + residencies.indexOf(engine.residency),
  };
}

function writeCell(
  writer: ColumnWriter,
  cell: SnapshotCell,
  index: number,
  inFlightRow: number,
  facts: ReadonlyMap<string, EngineRow>,
): number {
  const owners = decodeRing(cell);
  // Shares are what the ring gives; without one, what was asked.
  const weights = owners.length > 0 ? Array.from(countSlots(owners, cell.engines.length)) : cell.weights;
  const parts = weights.map((weight, i) => weight * cell.expectedMs[i]!);
  const timed = parts.some((part) => part > 0);
  const candidate = (id: string, weight: number, part: number) => ({ ...facts.get(id)!, weight, part });
  return writer.cell({
    index,
    inFlightRow,
    owners,
    candidates: cell.engines.map((id, i) => candidate(id, weights[i]!, timed ? parts[i]! : weights[i]!)),
    reserves: cell.reserves
      .filter(({ engine }) => !(weights[cell.engines.indexOf(engine)]! > 0))
      .map(({ engine, spareWps }) => {
        const weight = Math.max(spareWps, LEAST_SPARE_WPS);
        return candidate(engine, weight, weight);
      }),
  });
}

/** A reserve without spare capacity still stands before no answer at all. */
const LEAST_SPARE_WPS = 1e-9;

/** What an engine's draws are salted with: its identity, the same in every gateway. */
export function idHash(id: string): number {
  const bytes = new TextEncoder().encode(id);
  return xxh32(bytes, 0, bytes.length, 0);
}

/** Bits of `NEED` that an engine can't take. An engine whose capabilities aren't known is taken as able. */
function lacks({ capabilities }: SnapshotEngine): number {
  if (capabilities === null) return 0;
  const able = capabilities.reduce((bits, each) => bits | USE_OF[each], 0);
  return NEEDS_ALL & ~able;
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)];
}

/** The slots that one table holds. */
class Holdings {
  readonly #registry: SlotRegistry;
  #engines: number[] = [];
  #cells: number[] = [];

  constructor(registry: SlotRegistry) {
    this.#registry = registry;
  }

  engine(id: string): number {
    const slot = this.#registry.holdEngine(id);
    this.#engines.push(slot);
    return slot;
  }

  cell(key: string): number {
    const row = this.#registry.holdCell(key);
    this.#cells.push(row);
    return row;
  }

  /** A second call does nothing: a slot released twice would be given away under a table that holds it. */
  release(): void {
    for (const slot of this.#engines) this.#registry.releaseEngine(slot);
    for (const row of this.#cells) this.#registry.releaseCell(row);
    this.#engines = [];
    this.#cells = [];
  }
}
