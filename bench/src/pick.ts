import { decodeRing } from "@guidevane/core";
import { loadNative } from "@guidevane/native";
import {
  compileTable,
  createRouterFactory,
  HEAD,
  HEAD_BYTES,
  HEAD_WORDS,
  type HeadFacts,
  OUT,
  OUT_WORDS,
  PATH,
  ROUTE_STATUS,
  type Router,
  SlotRegistry,
} from "@guidevane/selector";
import type { BenchCase, BenchGroup } from "./case.ts";
import { chatBodies, ringSnapshot, sessionKeys } from "./inputs.ts";
import { pickTailNs } from "./pick-tail.ts";

const ENGINES = [8, 64, 512];
const KEYS = 64;
const SESSION_BODY_BYTES = 200;
const PROMPT_BYTES = 4096;

/** The whole choice of an engine for one request, through `Router.route`: scan, class, key, ring. */
export const pick: BenchGroup = {
  name: "pick",
  async open() {
    const load = loadNative();
    const kinds = load.binding === null ? (["ts"] as const) : (["ts", "native"] as const);
    const cases: BenchCase[] = [];
    for (const engines of ENGINES) {
      const snapshot = await ringSnapshot(engines);
      const cell = snapshot.cells[0]!;
      const owners = decodeRing(cell);
      for (const kind of kinds) {
        const registry = new SlotRegistry({ engines, cells: 1 });
        const router = createRouterFactory(kind).load(compileTable(snapshot, registry).table, registry.state);
        for (const { label, head, bodies, keys } of requests()) {
          cases.push({
            name: `pick/${kind}/${engines}-engines/${label}/×${KEYS}`,
            batch: KEYS,
            question: `${engines} engines, ${label}`,
            run: () => routeAll(router, head, bodies, keys),
            answer: () => answers(router, head, bodies, keys, (slot) => registry.engineAt(slot), owners, cell.engines),
          });
        }
      }
    }
    const missing = load.binding === null ? [`pick/native: ${load.reason}`] : [];
    const figures = async () => {
      const found: Record<string, number> = {};
      for (const kind of kinds) {
        found[`pick/${kind}/512-engines/tenth-out/p99-ns`] = await pickTailNs(kind);
      }
      return found;
    };
    return { cases, truths: new Map(), missing, figures, async close() {} };
  },
};

interface Requests {
  readonly label: string;
  readonly head: HeadFacts;
  readonly bodies: readonly Uint8Array[];
  /** One for each body; none = the prompt is the key. */
  readonly keys: readonly Uint8Array[];
}

function requests(): Requests[] {
  const head = () => {
    const facts = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
    facts.words[HEAD.path] = PATH.chat;
    return facts;
  };
  return [
    { label: "36-B-session", head: head(), bodies: chatBodies(KEYS, SESSION_BODY_BYTES), keys: sessionKeys(KEYS) },
    { label: "4-KiB-prompt", head: head(), bodies: chatBodies(KEYS, PROMPT_BYTES), keys: [] },
  ];
}

const out = new Uint32Array(OUT_WORDS);

function routeAll(router: Router, head: HeadFacts, bodies: readonly Uint8Array[], keys: readonly Uint8Array[]): number {
  let sum = 0;
  for (let at = 0; at < bodies.length; at++) {
    routeOne(router, head, bodies[at]!, keys[at]);
    sum += out[OUT.engine]!;
  }
  return sum;
}

function routeOne(router: Router, head: HeadFacts, body: Uint8Array, key: Uint8Array | undefined): number {
  head.words[HEAD.sessionKeyBytes] = key?.length ?? 0;
  if (key !== undefined) head.bytes.set(key);
  return router.route(head, body, out);
}

/** Every word that the router gave, and whether its engine owns its slot by the snapshot's own ring. */
function answers(
  router: Router,
  head: HeadFacts,
  bodies: readonly Uint8Array[],
  keys: readonly Uint8Array[],
  idOf: (slot: number) => string | null,
  owners: Uint16Array,
  engines: readonly string[],
): unknown {
  return bodies.map((body, at) => {
    if (routeOne(router, head, body, keys[at]) !== ROUTE_STATUS.ok) throw new Error(`request ${at} got no engine`);
    const owner = engines[owners[out[OUT.slot]!]!];
    if (idOf(out[OUT.engine]!) !== owner) throw new Error(`request ${at} went to another engine than ${owner}`);
    return [...out];
  });
}
