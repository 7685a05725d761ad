import type { ClusterSnapshot } from "@guidevane/core";
import {
  bootstrapSnapshot,
  ClassBound,
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
  STATE_HEALTHY,
  setEngine,
} from "@guidevane/selector";
import { cellOf, NOBODY, type PolicyWorld } from "../policy.ts";
import type { Choices, Choose, GuidevaneParts } from "./parts.ts";

const factory = createRouterFactory("auto");

/** One gateway's selector: its own memory, its own snapshot. */
export class GatewayRouter {
  readonly #world: PolicyWorld;
  readonly #cluster: number;
  readonly #parts: GuidevaneParts;
  readonly #choose: Choose | null;
  readonly #registry: SlotRegistry;
  readonly #head: HeadFacts = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
  readonly #out = new Uint32Array(OUT_WORDS);
  /** By class: the body of a conversation's first request, and of a later one. */
  readonly #bodies: readonly (readonly [Uint8Array, Uint8Array])[];
  #snapshot: ClusterSnapshot;
  #held!: HeldTable;
  #table!: RoutingTable;
  #router!: Router;
  #bound!: ClassBound;
  /** By engine of the lab: state slot, and back. */
  #slotOf: number[] = [];
  #engineOf: number[] = [];
  #classWord: number[] = [];
  #rowOf: number[] = [];

  constructor(world: PolicyWorld, gateway: number, parts: GuidevaneParts) {
    this.#world = world;
    this.#cluster = world.gatewayCluster[gateway]!;
    this.#parts = parts;
    this.#choose = parts.choose?.(world) ?? null;
    this.#registry = new SlotRegistry({ engines: 1024, cells: 64, moves: parts.memory ? 65_536 : NO_MEMORY });
    this.#bodies = world.fleet.classes.map(({ model }) => [bodyOf(model, ["user"]), bodyOf(model, LATER_TURN)]);
    this.#snapshot = bootstrapSnapshot(world.fleet.fleet, world.fleet.clusters[this.#cluster]!.name);
    this.use(this.#snapshot);
  }

  get snapshot(): ClusterSnapshot {
    return this.#snapshot;
  }

  /** Requests are routed by it from now on. */
  use(snapshot: ClusterSnapshot): void {
    const old = this.#held;
    const { engines, classes } = this.#world.fleet;
    this.#snapshot = snapshot;
    this.#held = compileTable(snapshot, this.#registry);
    this.#table = this.#held.table;
    this.#router = factory.load(this.#table, this.#registry.state);
    this.#bound = new ClassBound(this.#table, this.#registry.state);
    this.#slotOf = engines.map(({ id }) => this.#table.engineSlots.get(id) ?? NOWHERE);
    this.#engineOf = [];
    for (const [engine, slot] of this.#slotOf.entries()) if (slot !== NOWHERE) this.#engineOf[slot] = engine;
    this.#classWord = classes.map(({ name }) => classWord(this.#table, name));
    this.#rowOf = classes.map(({ name }) => this.#table.inFlightRows[this.#table.classes.indexOf(name)] ?? NOWHERE);
    // Held by the new table first, so that slots and counts stay where they are.
    old?.release();
  }

  /** What is known of each engine, as the words that routers read: part of its share, and whether it is to cool. */
  writeStates(factors: Float64Array, isCooling: (engine: number) => boolean): void {
    for (const [engine, slot] of this.#slotOf.entries()) {
      if (slot === NOWHERE) continue;
      const factor = factors[engine]!;
      const word = factor > 0 ? Math.round(factor * STATE.factorMask) : STATE.out | STATE.factorMask;
      setEngine(this.#registry.state, slot, isCooling(engine) ? word | STATE.cooling : word);
    }
  }

  /** The engine for a request, or `NOBODY`; what else was found can be asked until the next call. */
  route(request: number, tried: readonly number[]): number {
    const world = this.#world;
    const { words, bytes } = this.#head;
    const { workload, places } = world;
    const k = places.class[workload.requestClass[request]!]!;
    words[HEAD.path] = PATH.chat;
    words[HEAD.classNamed] = this.#classWord[k]!;
    words[HEAD.nowS] = world.clock.nowMs() / 1000;
    words[HEAD.sessionKeyBytes] = writeKey(bytes, world.keyHash[workload.conversation[request]!]!);
    words[HEAD.placement] = this.#parts.placement === "auto" && world.liveGateways(this.#cluster) === 1 ? 1 : 0;
    words[HEAD.triedCount] = tried.length;
    for (let i = 0; i < tried.length; i++) words[HEAD.tried + i] = this.#slotOf[tried[i]!]!;
    const body = this.#bodies[k]![workload.turn[request] === 0 ? 0 : 1];
    const status = this.#router.route(this.#head, body, this.#out);
    if (!this.#parts.memory) this.#registry.state.moves.fill(0);
    if (status !== ROUTE_STATUS.ok) return NOBODY;
    const routed = this.#engineOf[this.#out[OUT.engine]!] ?? NOBODY;
    return this.#choose === null ? routed : this.#choose(request, this.#choices(routed, tried));
  }

  #choices(routed: number, tried: readonly number[]): Choices {
    const bound = this.#bound;
    const engineOf = this.#engineOf;
    const { engines } = this.#registry.state;
    const fine = bound.begin(this.#out[OUT.requestClass]!).filter((slot) => {
      const isWell = engines[slot] === STATE_HEALTHY || engineOf[slot] === routed;
      return isWell && !tried.includes(engineOf[slot]!) && !bound.isOver(slot);
    });
    return {
      routed,
      fine: fine.map((slot) => engineOf[slot]!),
      hasFewer: (one, other) => bound.hasFewer(this.#slotOf[one]!, this.#slotOf[other]!),
    };
  }

  get cell(): number {
    return this.#out[OUT.cell]!;
  }

  get isFirst(): boolean {
    return this.#out[OUT.first] === 1;
  }

  get keyHash2(): number {
    return this.#out[OUT.keyHash2]!;
  }

  countStream(request: number, engine: number, change: 1 | -1): void {
    if (!this.#parts.bound) return;
    const row = this.#rowOf[Math.floor(cellOf(this.#world, request) / this.#world.fleet.clusters.length)]!;
    const slot = this.#slotOf[engine]!;
    if (row !== NOWHERE && slot !== NOWHERE) countStreams(this.#registry.state, 0, row, slot, change);
  }
}

const NOWHERE = -1;
/** The least that a registry takes; emptied after each request. */
const NO_MEMORY = 8;
const LATER_TURN = ["user", "assistant", "user"];

function bodyOf(model: string, roles: readonly string[]): Uint8Array {
  const messages = roles.map((role) => ({ role, content: "." }));
  return new TextEncoder().encode(JSON.stringify({ model, messages }));
}

/** The key as eight hexadecimal digits; gives how many bytes that is. */
function writeKey(bytes: Uint8Array, key: number): number {
  for (let digit = 0; digit < 8; digit++) {
    const value = (key >>> (28 - 4 * digit)) & 15;
    bytes[digit] = value < 10 ? 48 + value : 87 + value;
  }
  return 8;
}
