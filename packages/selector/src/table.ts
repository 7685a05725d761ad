import { type ClusterSnapshot, decodeRing, type SnapshotCell, type SnapshotEngine } from "@guidevane/core";
import { NEEDS_ALL, USE_OF } from "./facts.ts";
import { countSlots } from "./ring.ts";
import type { SlotRegistry } from "./slots.ts";
import { type Columns, ColumnWriter, NO_CELL, NO_LIMIT } from "./table-columns.ts";
import { xxh32 } from "./xxh32.ts";

/** A snapshot made ready for routing: immutable, its numbers in columns that native code reads as they are. */
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
  /** What `HEAD.residency` says for a header's value. */
  residencyWord(name: string): number;
  /** What `HEAD.classNamed` says for a header's value; 0 for a class that the snapshot doesn't have. */
  classWord(name: string): number;
  /** Lets go of the slots. Once, when no request routes by this table any more. */
  release(): void;
}

/**
 * Compiles a checked snapshot. Off the request threads: it takes about a millisecond per hundred cells.
 *
 * @throws GuidevaneError `bad_snapshot` when the process has no slot left for an engine or a cell
 */
export function compileTable(snapshot: ClusterSnapshot, registry: SlotRegistry): RoutingTable {
  const held = new Holdings(registry);
  try {
    return compile(snapshot, held);
  } catch (error) {
    held.release();
    throw error;
  }
}

function compile(snapshot: ClusterSnapshot, held: Holdings): RoutingTable {
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
  const engineSlots = new Map(engineEntries.map(([id]) => [id, held.engine(id)]));
  const inFlightRows: number[] = classes.map(() => -1);

  const writer = new ColumnWriter();
  const cellAt = new Map<string, number>();
  for (const [index, cell] of snapshot.cells.entries()) {
    if (cell.cluster !== snapshot.cluster || cellAt.has(cell.class)) continue;
    const row = held.cell(`${cell.cluster}\n${cell.class}`);
    inFlightRows[classes.indexOf(cell.class)] = row;
    cellAt.set(cell.class, writeCell(writer, cell, index, row, snapshot.engines, engineSlots, residencies));
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
    engineSlots,
    inFlightRows,
    columns: writer.finish(),
    residencyWord: (name) => 1 + (residencies.includes(name) ? residencies.indexOf(name) : residencies.length),
    classWord: (name) => 1 + classes.indexOf(name),
    release: () => held.release(),
  };
}

/** A body's name is compared as it was sent, without its quotes. */
function asInJson(name: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(name).slice(1, -1));
}

function writeCell(
  writer: ColumnWriter,
  cell: SnapshotCell,
  index: number,
  inFlightRow: number,
  engines: Readonly<Record<string, SnapshotEngine>>,
  engineSlots: ReadonlyMap<string, number>,
  residencies: readonly string[],
): number {
  const owners = decodeRing(cell);
  // Shares are what the ring gives; without one, what was asked.
  const weights = owners.length > 0 ? Array.from(countSlots(owners, cell.engines.length)) : cell.weights;
  const parts = weights.map((weight, i) => weight * cell.expectedMs[i]!);
  const timed = parts.some((part) => part > 0);
  const candidate = (id: string, weight: number, part: number) => {
    const engine = engines[id]!;
    return {
      slot: engineSlots.get(id)!,
      idHash: idHash(id),
      lacks: lacks(engine),
      maxContextTokens: engine.maxContextTokens === null ? NO_LIMIT : Math.floor(engine.maxContextTokens),
      residency: engine.residency === null ? 0 : 1 + residencies.indexOf(engine.residency),
      weight,
      part,
    };
  };
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
