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
import type { BenchCase, BenchGroup, BenchRatio } from "./case.ts";
import { proseBodies, ringSnapshot } from "./inputs.ts";

const BODIES = 64;
const ENGINES = 64;
const SIZES = [1, 16] as const;

/**
 * From a body's bytes to an engine: the native router, its twin, and what a router without them would do, `JSON.parse` and
 * then the choice by the same key.
 */
export const bodies: BenchGroup = {
  name: "bodies",
  async open() {
    const load = loadNative();
    const snapshot = await ringSnapshot(ENGINES);
    const cases: BenchCase[] = [];
    const ratios: BenchRatio[] = [];
    const kinds = load.binding === null ? (["ts"] as const) : (["ts", "native"] as const);
    for (const size of SIZES) {
      const chats = proseBodies(BODIES, size * 1024);
      const question = `the engine of ${size} KB of chat`;
      const name = (kind: string) => `bodies/${kind}/${size}-KB/×${BODIES}`;
      for (const kind of kinds) {
        const registry = new SlotRegistry({ engines: ENGINES, cells: 1 });
        const router = createRouterFactory(kind).load(compileTable(snapshot, registry).table, registry.state);
        cases.push({
          name: name(kind),
          batch: BODIES,
          question,
          run: () => chats.reduce((sum, body) => sum + route(router, body), 0),
          answer: () => chats.map((body) => route(router, body)),
        });
      }
      const registry = new SlotRegistry({ engines: ENGINES, cells: 1 });
      const router = createRouterFactory("ts").load(compileTable(snapshot, registry).table, registry.state);
      cases.push({
        name: name("parse"),
        batch: BODIES,
        question,
        run: () => chats.reduce((sum, body) => sum + parseAndRoute(router, body), 0),
        answer: () => chats.map((body) => parseAndRoute(router, body)),
      });
      if (load.binding === null) continue;
      for (const over of ["ts", "parse"])
        ratios.push({ name: `bodies/${over}÷native/${size}-KB`, over: name(over), under: name("native") });
    }
    const missing = load.binding === null ? [`bodies/native: ${load.reason}`] : [];
    return { cases, truths: new Map(), missing, ratios, async close() {} };
  },
};

const head: HeadFacts = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
const out = new Uint32Array(OUT_WORDS);
const encoder = new TextEncoder();
const EMPTY = encoder.encode("{}");

function route(router: Router, body: Uint8Array): number {
  head.words[HEAD.path] = PATH.chat;
  head.words[HEAD.sessionKeyBytes] = 0;
  if (router.route(head, body, out) !== ROUTE_STATUS.ok) throw new Error("a body got no engine");
  return out[OUT.engine]!;
}

const KEY_BYTES = 4096;

/** The key is the first user message as JSON: with one message that is what the routers hash. */
function parseAndRoute(router: Router, body: Buffer): number {
  const { messages } = JSON.parse(body.toString("utf8")) as { messages: { role: string; content: string }[] };
  const first = messages.find(({ role }) => role === "user")!;
  const { written } = encoder.encodeInto(JSON.stringify(first.content), head.bytes.subarray(0, KEY_BYTES));
  head.words[HEAD.path] = PATH.chat;
  head.words[HEAD.sessionKeyBytes] = written;
  if (router.route(head, EMPTY, out) !== ROUTE_STATUS.ok) throw new Error("a body got no engine");
  return out[OUT.engine]!;
}
