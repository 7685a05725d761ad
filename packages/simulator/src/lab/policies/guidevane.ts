import type { ClusterSnapshot, StoredPublication } from "@guidevane/core";
import { FirstShare, plannedShed } from "@guidevane/guard";
import { cellKey, type PlanWarm, plan } from "@guidevane/optimizer";
import {
  bootstrapSnapshot,
  classWord,
  compileTable,
  countStreams,
  createRouterFactory,
  HEAD,
  HEAD_BYTES,
  HEAD_WORDS,
  type HeadFacts,
  type HeldTable,
  OUT,
  OUT_WORDS,
  PATH,
  ROUTE_STATUS,
  type Router,
  type RoutingTable,
  SlotRegistry,
  STATE,
  setEngine,
} from "@guidevane/selector";
import { cellOf, NOBODY, type Policy, type PolicyDefinition, type PolicyWorld, SHED } from "../policy.ts";

/** Guidevane itself: the production plan, rings and router, and the guard's health; nothing here decides anything. */
export const guidevane: PolicyDefinition = {
  name: "guidevane",
  does: "routes by the production optimizer's rings, with its selector and guard",
  grid: {},
  create: (world) => new Guidevane(world),
};

class Guidevane implements Policy {
  readonly #world: PolicyWorld;
  readonly #gateways: GatewayRouter[];
  #stored: StoredPublication | null = null;
  #warm: PlanWarm | null = null;
  #deliveredMs = 0;

  constructor(world: PolicyWorld) {
    this.#world = world;
    this.#gateways = Array.from(world.gatewayCluster, (_, gateway) => new GatewayRouter(world, gateway));
  }

  route(gateway: number, request: number, tried: readonly number[]): number {
    return this.#gateways[gateway]!.route(request, tried, this.#world.nowMs() - this.#deliveredMs);
  }

  sent(gateway: number, request: number, engine: number): void {
    this.#gateways[gateway]!.countStream(request, engine, 1);
  }

  ended(gateway: number, request: number, engine: number): void {
    this.#gateways[gateway]!.countStream(request, engine, -1);
  }

  tick(): void {
    const world = this.#world;
    const { clusters, classes, engines, fleet } = world.fleet;
    const demandRps = new Map<string, number>();
    for (const [k, spec] of classes.entries())
      for (const [c, cluster] of clusters.entries())
        demandRps.set(cellKey(cluster.name, spec.name), world.demandRps(k * clusters.length + c));
    const inputs = {
      wallMs: world.wallMs(),
      fleet,
      demandRps,
      engines: new Map(
        engines.map(({ id, adminState }, e) => [
          id,
          { readyReplicas: world.readyReplicas(e), severity: 0, adminState },
        ]),
      ),
      gateways: new Map(clusters.map(({ name }, c) => [name, world.liveGateways(c)])),
    };
    const planned = plan(inputs, this.#stored, this.#warm, { deadlineMs: null });
    this.#warm = planned.warm;
    const version = (this.#stored?.version ?? 0) + 1;
    if (planned.publication !== null) {
      const stamped = new Map(
        [...planned.publication.clusters].map(([name, snapshot]) => [name, { ...snapshot, version, epoch: 1 }]),
      );
      this.#stored = { ...planned.publication, clusters: stamped, version, epoch: 1 };
      this.#tellChurn(stamped);
    }
    const publication = planned.publication === null ? null : this.#stored;
    world.deliver(() => {
      this.#deliveredMs = world.nowMs();
      if (publication === null) return;
      for (const gateway of this.#gateways) gateway.load(publication.clusters);
    });
  }

  #tellChurn(snapshots: ReadonlyMap<string, ClusterSnapshot>): void {
    const { clusters, classes, engines } = this.#world.fleet;
    const place = new Map(engines.map(({ id }, e) => [id, e]));
    for (const [c, { name }] of clusters.entries()) {
      for (const cell of snapshots.get(name)?.cells ?? []) {
        const weights = new Float64Array(engines.length);
        for (const [index, id] of cell.engines.entries()) weights[place.get(id)!] = cell.weights[index]!;
        const k = classes.findIndex((spec) => spec.name === cell.class);
        this.#world.published(k * clusters.length + c, weights);
      }
    }
  }
}

const factory = createRouterFactory("auto");

/** One gateway's selector: its own memory, its own snapshot. */
class GatewayRouter {
  readonly #world: PolicyWorld;
  readonly #gateway: number;
  readonly #cluster: string;
  readonly #registry = new SlotRegistry({ engines: 1024, cells: 64, moves: 65_536 });
  readonly #head: HeadFacts = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
  readonly #out = new Uint32Array(OUT_WORDS);
  readonly #bodies: readonly Uint8Array[];
  #snapshot!: ClusterSnapshot;
  #held: HeldTable | null = null;
  #table!: RoutingTable;
  #router!: Router;
  /** By engine of the lab: state slot, and back. */
  #slotOf: number[] = [];
  #engineOf = new Map<number, number>();
  #classWord: number[] = [];
  readonly #firstShares: readonly FirstShare[];

  constructor(world: PolicyWorld, gateway: number) {
    this.#world = world;
    this.#gateway = gateway;
    const cluster = world.fleet.clusters[world.gatewayCluster[gateway]!]!;
    this.#cluster = cluster.name;
    this.#firstShares = world.fleet.classes.map(() => new FirstShare());
    const encoder = new TextEncoder();
    this.#bodies = world.fleet.classes.map(({ model }) => encoder.encode(JSON.stringify({ model })));
    this.#use(bootstrapSnapshot(world.fleet.fleet, cluster.name));
  }

  load(snapshots: ReadonlyMap<string, ClusterSnapshot>): void {
    const snapshot = snapshots.get(this.#cluster);
    if (snapshot !== undefined) this.#use(snapshot);
  }

  #use(snapshot: ClusterSnapshot): void {
    const old = this.#held;
    const { engines, classes } = this.#world.fleet;
    this.#snapshot = snapshot;
    this.#held = compileTable(snapshot, this.#registry);
    this.#table = this.#held.table;
    this.#router = factory.load(this.#table, this.#registry.state);
    this.#slotOf = engines.map(({ id }) => this.#table.engineSlots.get(id) ?? -1);
    this.#engineOf = new Map(this.#slotOf.map((slot, engine) => [slot, engine]));
    this.#classWord = classes.map(({ name }) => classWord(this.#table, name));
    // Held by the new table first, so that slots and counts stay where they are.
    old?.release();
  }

  route(request: number, tried: readonly number[], sinceControlMs: number): number {
    const world = this.#world;
    const { words, bytes } = this.#head;
    const out = this.#out;
    const k = world.places.class[world.workload.requestClass[request]!]!;
    words[HEAD.path] = PATH.chat;
    words[HEAD.classNamed] = this.#classWord[k]!;
    words[HEAD.nowS] = world.nowMs() / 1000;
    words[HEAD.sessionKeyBytes] = writeKey(bytes, world.keyHash[world.workload.conversation[request]!]!);
    words[HEAD.triedCount] = tried.length;
    for (let i = 0; i < tried.length; i++) words[HEAD.tried + i] = this.#slotOf[tried[i]!]!;
    this.#writeStates();
    if (this.#router.route(this.#head, this.#bodies[k]!, out) !== ROUTE_STATUS.ok) return NOBODY;
    const { shed } = this.#snapshot.cells[out[OUT.cell]!]!;
    if (tried.length === 0) {
      const first = world.workload.turn[request] === 0;
      const share = this.#firstShares[k]!;
      share.add(first, world.nowMs());
      const keyHash2 = out[OUT.keyHash2]!;
      if (plannedShed({ shed, firstShare: share.value, first, keyHash2, sinceControlMs })) return SHED;
    }
    return this.#engineOf.get(out[OUT.engine]!) ?? NOBODY;
  }

  countStream(request: number, engine: number, change: 1 | -1): void {
    const { fleet } = this.#world;
    const name = fleet.classes[Math.floor(cellOf(this.#world, request) / fleet.clusters.length)]!.name;
    const row = this.#table.inFlightRows[this.#table.classes.indexOf(name)] ?? -1;
    const slot = this.#slotOf[engine]!;
    if (row < 0 || slot < 0) return;
    countStreams(this.#registry.state, 0, row, slot, change);
  }

  /** What the guard holds of each engine, as the words that routers read. */
  #writeStates(): void {
    const { health, fleet } = this.#world;
    const from = this.#gateway * fleet.engines.length;
    for (let engine = 0; engine < fleet.engines.length; engine++) {
      const slot = this.#slotOf[engine]!;
      if (slot < 0) continue;
      const factor = health[from + engine]!;
      const word = factor > 0 ? Math.round(factor * STATE.factorMask) : STATE.out | STATE.factorMask;
      setEngine(this.#registry.state, slot, word);
    }
  }
}

/** The key as eight hexadecimal digits; gives how many bytes that is. */
function writeKey(bytes: Uint8Array, key: number): number {
  for (let digit = 0; digit < 8; digit++) {
    const value = (key >>> (28 - 4 * digit)) & 15;
    bytes[digit] = value < 10 ? 48 + value : 87 + value;
  }
  return 8;
}
