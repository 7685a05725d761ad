import type { ClusterSnapshot } from "@guidevane/core";
import { loadNative } from "@guidevane/native";
import { createRouterFactory, type RouterFactory } from "./create-router.ts";
import {
  HEAD,
  HEAD_BYTES,
  HEAD_WORDS,
  type HeadFacts,
  KEY_SOURCES,
  NO_ENGINE,
  OUT,
  OUT_WORDS,
  PATH,
  REASONS,
  ROUTE_STATUS,
  type Router,
} from "./router.ts";
import { countStreams, setEngine, streamsAt } from "./shared-state.ts";
import { SlotRegistry } from "./slots.ts";
import { classWord, compileTable, type HeldTable, type RoutingTable, residencyWord } from "./table.ts";

/** Why there is no native router here, or null where there is one. */
export const nativeMissing: string | null = createRouterFactory("auto", loadNative).degraded ?? null;

/** Runs every rule on each router; without the addon its half is skipped, and the title says why. */
export function describeRouters(describe: Describe, title: string, rules: (load: LoadDriver) => void): void {
  for (const kind of ["ts", "native"] as const) {
    const missing = kind === "native" ? nativeMissing : null;
    describe.skipIf(missing !== null)(`${title} (${kind}${missing === null ? "" : `; skipped: ${missing}`})`, () => {
      rules((snapshot, registry) => new Driver(createRouterFactory(kind, loadNative), snapshot, registry));
    });
  }
}

/** Vitest's own, handed in: what is no test imports no test tool. */
interface Describe {
  skipIf(condition: boolean): (title: string, rules: () => void) => unknown;
}

export type LoadDriver = (snapshot: ClusterSnapshot, registry?: SlotRegistry) => Driver;

export interface HeadOptions {
  readonly path?: number;
  readonly key?: string;
  readonly tenant?: number;
  readonly className?: string;
  readonly residency?: string;
  readonly tried?: readonly string[];
  /** Places first requests by two choices. */
  readonly placement?: boolean;
  /** The engine known to hold what `previous_response_id` names. */
  readonly followed?: string;
  readonly nowS?: number;
}

export const CHAT_BODY: Uint8Array = Buffer.from('{"model":"m-chat","messages":[{"role":"user","content":"hi"}]}');

const EMPTY_BODY: Uint8Array = Buffer.from("{}");

/** One router of one gateway, with its answers in words. */
export class Driver {
  readonly held: HeldTable;
  readonly table: RoutingTable;
  readonly registry: SlotRegistry;
  readonly router: Router;
  readonly head: HeadFacts = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
  readonly out: Uint32Array = new Uint32Array(OUT_WORDS);
  status: keyof typeof ROUTE_STATUS = "ok";

  constructor(
    factory: RouterFactory,
    snapshot: ClusterSnapshot,
    registry: SlotRegistry = new SlotRegistry({ engines: 64, cells: 8, moves: 4096 }),
  ) {
    this.registry = registry;
    this.held = compileTable(snapshot, registry);
    this.table = this.held.table;
    this.router = factory.load(this.table, registry.state);
  }

  /** Routes, and gives the engine's id, or null. */
  route(body: string | Uint8Array = CHAT_BODY, options: HeadOptions = {}): string | null {
    const { words, bytes } = this.head;
    const key = Buffer.from(options.key ?? "");
    words.fill(0);
    bytes.set(key);
    words[HEAD.path] = options.path ?? PATH.chat;
    words[HEAD.sessionKeyBytes] = key.length;
    words[HEAD.tenant] = options.tenant ?? 0;
    words[HEAD.classNamed] = options.className === undefined ? 0 : classWord(this.table, options.className);
    words[HEAD.residency] = options.residency === undefined ? 0 : residencyWord(this.table, options.residency);
    words[HEAD.placement] = options.placement === true ? 1 : 0;
    words[HEAD.followed] = options.followed === undefined ? 0 : 1 + this.slot(options.followed);
    words[HEAD.nowS] = options.nowS ?? 0;
    words[HEAD.triedCount] = options.tried?.length ?? 0;
    for (const [i, id] of options.tried?.entries() ?? [])
      words[HEAD.tried + i] = this.table.engineSlots.get(id) ?? NO_ENGINE;
    const status = this.router.route(this.head, typeof body === "string" ? Buffer.from(body) : body, this.out);
    this.status = STATUSES[status]!;
    return this.#engine(OUT.engine);
  }

  /** `route` of one of many numbered session keys, as fast as it goes, in a fleet of one model. Gives the state slot. */
  routeKey(number: number, body: Uint8Array = EMPTY_BODY): number {
    const { words, bytes } = this.head;
    bytes[0] = number;
    bytes[1] = number >>> 8;
    bytes[2] = number >>> 16;
    bytes[3] = number >>> 24;
    words[HEAD.sessionKeyBytes] = 4;
    this.router.route(this.head, body, this.out);
    return this.out[OUT.engine]!;
  }

  get home(): string | null {
    return this.#engine(OUT.home);
  }

  get second(): string | null {
    return this.#engine(OUT.second);
  }

  get reason(): string {
    return REASONS[this.out[OUT.reason]!]!;
  }

  get keySource(): string {
    return KEY_SOURCES[this.out[OUT.keySource]!]!;
  }

  get keyHashes(): [number, number] {
    return [this.out[OUT.keyHash]!, this.out[OUT.keyHash2]!];
  }

  get className(): string | null {
    return this.table.classes[this.out[OUT.requestClass]!] ?? null;
  }

  slot(id: string): number {
    return this.table.engineSlots.get(id)!;
  }

  setState(id: string, word: number): void {
    setEngine(this.registry.state, this.slot(id), word);
  }

  setStreams(id: string, streams: number, className = "chat"): void {
    const row = this.table.inFlightRows[this.table.classes.indexOf(className)]!;
    const { state } = this.registry;
    countStreams(state, 0, row, this.slot(id), streams - streamsAt(state, row, this.slot(id)));
  }

  streams(id: string, row: number): number {
    return streamsAt(this.registry.state, row, this.slot(id));
  }

  #engine(place: number): string | null {
    const slot = this.out[place]!;
    return slot === NO_ENGINE ? null : this.registry.engineAt(slot);
  }
}

const STATUSES: (keyof typeof ROUTE_STATUS)[] = [];
for (const [name, status] of Object.entries(ROUTE_STATUS)) STATUSES[status] = name as keyof typeof ROUTE_STATUS;
