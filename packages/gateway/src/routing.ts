import { type ClusterSnapshot, unpackSnapshot } from "@guidevane/core";
import type { RetryRows } from "@guidevane/guard";
import {
  classWord,
  countStreams,
  type RequestNeeds,
  type Router,
  type RouterFactory,
  type RoutingTable,
  type RuledOut,
  type RuledOutByPlan,
  residencyWord,
  ruledOutByPlan,
  ruledOutNow,
  type SharedState,
  xxh32,
} from "@guidevane/selector";
import type { CompiledSnapshot } from "./compiled-snapshots.ts";
import type { HeadNumbers, RequestHead } from "./head-facts.ts";
import { engineHash } from "./response-memory.ts";
import { COOLING_LONG } from "./state-word.ts";

/**
 * One snapshot as a request thread routes by it. A request takes the reference once and keeps it to its end, so that
 * indices mean the same from its first attempt to its last; it is let go when it is retired and the last such request is
 * over.
 */
export class Routing {
  readonly number: number;
  readonly snapshot: ClusterSnapshot;
  readonly router: Router;
  readonly #table: RoutingTable;
  readonly #state: SharedState;
  readonly #thread: number;
  readonly #retryRows: ReadonlyMap<string, RetryRows>;
  readonly #onIdle: (routing: Routing) => void;
  readonly #engineOfSlot: ReadonlyMap<number, string>;
  /** Some engines each: what rules out most of a thousand nobody asks. */
  #chunks: readonly ClusterSnapshot[] | null = null;
  /** By class and chunk. */
  readonly #plain = new Map<string, RuledOutByPlan[]>();
  #slotOfHash: ReadonlyMap<number, number> | null = null;
  #users = 0;
  #retired = false;

  /**
   * @param onIdle is told once, when it is retired and no request is routed by it any more
   * @param thread whose rows of the shared state its streams are counted in
   */
  constructor(
    { number, packed, table, retryRows }: CompiledSnapshot,
    state: SharedState,
    factory: RouterFactory,
    onIdle: (routing: Routing) => void,
    thread = 0,
  ) {
    this.number = number;
    this.snapshot = unpackSnapshot(packed);
    this.#table = table;
    this.#state = state;
    this.#thread = thread;
    this.#retryRows = retryRows;
    this.#onIdle = onIdle;
    this.#engineOfSlot = new Map([...table.engineSlots].map(([id, slot]) => [slot, id]));
    this.router = factory.load(table, state);
  }

  /** A request begins to route by it. */
  use(): void {
    this.#users += 1;
  }

  /** That request is over. */
  done(): void {
    this.#users -= 1;
    this.#tellWhenIdle();
  }

  /** No new request will use it. */
  retire(): void {
    this.#retired = true;
    this.#tellWhenIdle();
  }

  /** Class by `OUT.requestClass`; undefined where the request matched none. */
  classAt(index: number): string | undefined {
    return this.#table.classes[index];
  }

  /** Engine id by state slot. */
  engineAt(slot: number): string | null {
    return this.#engineOfSlot.get(slot) ?? null;
  }

  /** What the head's names are in this snapshot's table; null where a class is named that it doesn't have. */
  numbersOf(head: RequestHead): HeadNumbers | null {
    const classNamed = head.className === null ? 0 : classWord(this.#table, head.className);
    if (head.className !== null && classNamed === 0) return null;
    return {
      classNamed,
      residency: head.residency === null ? 0 : residencyWord(this.#table, head.residency),
      tenant: tenantHash(head.tenant),
    };
  }

  /** Counts a stream in (+1) or out (−1) of a class's cell at an engine's slot. */
  countStream(requestClass: number, slot: number, change: 1 | -1): void {
    const row = this.#table.inFlightRows[requestClass];
    if (row !== undefined && row >= 0) countStreams(this.#state, this.#thread, row, slot, change);
  }

  /** Where a class's retry budget is. */
  retryRows(className: string): RetryRows | undefined {
    return this.#retryRows.get(className);
  }

  /** Whether the engine at a slot asked to be left alone, and for a second or more from now. */
  isCoolingLong(slot: number): boolean {
    return (Atomics.load(this.#state.engines, slot) & COOLING_LONG) !== 0;
  }

  /** State word (`STATE`) of the engine at a slot. */
  stateAt(slot: number): number {
    return Atomics.load(this.#state.engines, slot);
  }

  /** Rises when an engine's state changes. */
  get stateVersion(): number {
    return Atomics.load(this.#state.version, 0);
  }

  /** Slot of the engine whose id has this `engineHash`; null where the snapshot has none. */
  slotOfHash(hash: number): number | null {
    this.#slotOfHash ??= new Map([...this.#engineOfSlot].map(([slot, id]) => [engineHash(id), slot]));
    return this.#slotOfHash.get(hash) ?? null;
  }

  /** What rules out each engine for a request of this class. @param most engines to name at the most, the first ones */
  ruledOut(className: string, needs: RequestNeeds, most = Number.POSITIVE_INFINITY): RuledOut[] {
    const { engines } = this.#state;
    const slots = this.#table.engineSlots;
    const found: RuledOut[] = [];
    this.#chunks ??= chunksOf(this.snapshot);
    for (const chunk of this.#chunks.keys()) {
      const byPlan = this.#byPlan(chunk, className, needs);
      for (const each of ruledOutNow(byPlan, needs.tried, (id) => Atomics.load(engines, slots.get(id)!))) {
        if (found.length >= most) return found;
        found.push(each);
      }
    }
    return found;
  }

  /** Kept for requests that ask nothing of their own, which most do. */
  #byPlan(chunk: number, className: string, needs: RequestNeeds): RuledOutByPlan {
    const engines = this.#chunks![chunk]!;
    if (needs.needs !== 0 || needs.contextTokens !== 0 || needs.residency !== null)
      return ruledOutByPlan(engines, className, needs);
    let ofClass = this.#plain.get(className);
    if (ofClass === undefined) {
      ofClass = [];
      this.#plain.set(className, ofClass);
    }
    ofClass[chunk] ??= ruledOutByPlan(engines, className, needs);
    return ofClass[chunk];
  }

  #tellWhenIdle(): void {
    if (this.#retired && this.#users === 0) this.#onIdle(this);
  }
}

const ENGINES_A_CHUNK = 128;

/** The snapshot with some of its engines each, in order. */
function chunksOf(snapshot: ClusterSnapshot): ClusterSnapshot[] {
  const engines = Object.entries(snapshot.engines);
  return Array.from({ length: Math.ceil(engines.length / ENGINES_A_CHUNK) }, (_, chunk) => {
    const own = engines.slice(chunk * ENGINES_A_CHUNK, (chunk + 1) * ENGINES_A_CHUNK);
    return { ...snapshot, engines: Object.fromEntries(own) };
  });
}

/** A tenant as a number; 0 = none. */
export function tenantHash(tenant: Buffer | null): number {
  return tenant === null ? 0 : xxh32(tenant, 0, tenant.length, 0) || 1;
}
