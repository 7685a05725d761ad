import type { ClusterSnapshot } from "@guidevane/core";
import {
  compileTable,
  type RequestNeeds,
  type Router,
  type RouterFactory,
  type RoutingTable,
  type RuledOut,
  ruledOut,
  type SlotRegistry,
  xxh32,
} from "@guidevane/selector";
import type { HeadNumbers, RequestHead } from "./head-facts.ts";

/** Where a snapshot came from. */
export type SnapshotSource = "control" | "disk" | "bootstrap";

/**
 * One snapshot, ready to route by. A request takes the reference once and keeps it to its end, so that indices mean the
 * same from its first attempt to its last; its slots are let go when it is retired and the last such request is over.
 */
export class Routing {
  readonly snapshot: ClusterSnapshot;
  readonly source: SnapshotSource;
  readonly router: Router;
  readonly #table: RoutingTable;
  readonly #registry: SlotRegistry;
  readonly #onReleased: (routing: Routing) => void;
  #users = 0;
  #retired = false;

  /** @throws GuidevaneError `bad_snapshot` when the process has no slot left for an engine or a cell */
  constructor(
    snapshot: ClusterSnapshot,
    source: SnapshotSource,
    registry: SlotRegistry,
    factory: RouterFactory,
    onReleased: (routing: Routing) => void,
  ) {
    this.snapshot = snapshot;
    this.source = source;
    this.#registry = registry;
    this.#table = compileTable(snapshot, registry);
    this.#onReleased = onReleased;
    this.router = factory.load(this.#table, registry.state);
  }

  /** A request begins to route by it. */
  use(): void {
    this.#users += 1;
  }

  /** That request is over. */
  done(): void {
    this.#users -= 1;
    this.#releaseWhenIdle();
  }

  /** No new request will use it. */
  retire(): void {
    this.#retired = true;
    this.#releaseWhenIdle();
  }

  /** Class by `OUT.requestClass`; undefined where the request matched none. */
  classAt(index: number): string | undefined {
    return this.#table.classes[index];
  }

  /** Engine id by state slot. */
  engineAt(slot: number): string | null {
    return this.#registry.engineAt(slot);
  }

  /** What the head's names are in this snapshot's table; null where a class is named that it doesn't have. */
  numbersOf(head: RequestHead): HeadNumbers | null {
    const classNamed = head.className === null ? 0 : this.#table.classWord(head.className);
    if (head.className !== null && classNamed === 0) return null;
    return {
      classNamed,
      residency: head.residency === null ? 0 : this.#table.residencyWord(head.residency),
      // 0 says that there is no tenant.
      tenant: head.tenant === null ? 0 : xxh32(head.tenant, 0, head.tenant.length, 0) || 1,
    };
  }

  /** Counts a stream in (+1) or out (−1) of a class's cell at an engine's slot. */
  countStream(requestClass: number, slot: number, change: 1 | -1): void {
    const row = this.#table.inFlightRows[requestClass];
    if (row === undefined || row < 0) return;
    const { engines, inFlight } = this.#registry.state;
    Atomics.add(inFlight, row * engines.length + slot, change);
  }

  /** What rules out each engine for a request of this class. */
  ruledOut(className: string, needs: RequestNeeds): RuledOut[] {
    const { engines } = this.#registry.state;
    const slots = this.#table.engineSlots;
    return ruledOut(this.snapshot, className, needs, (id) => Atomics.load(engines, slots.get(id)!));
  }

  #releaseWhenIdle(): void {
    if (!this.#retired || this.#users > 0) return;
    this.#table.release();
    this.#onReleased(this);
  }
}
