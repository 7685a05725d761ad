import {
  compileTable,
  countStreams,
  createRouterFactory,
  HEAD,
  HEAD_BYTES,
  HEAD_WORDS,
  OUT,
  OUT_WORDS,
  ROUTE_STATUS,
  SlotRegistry,
  STATE,
  STATE_HEALTHY,
  setEngine,
} from "@guidevane/selector";
import { ringSnapshot, sessionKeys } from "./inputs.ts";

const ENGINES = 512;
const KEYS = 4000;
/** Calls timed together: one is shorter than the clock's own cost. */
const CALLS = 64;
const BODY = new TextEncoder().encode("{}");

/**
 * The 99th percentile over keys of what a choice among 512 engines costs, ns, a tenth of them out and each with ten
 * streams: a key whose home is out looks at every other engine. Each key's time is the least of five rounds, so that what
 * else the machine did in one of them is not the key's.
 */
export async function pickTailNs(kind: "ts" | "native"): Promise<number> {
  const snapshot = await ringSnapshot(ENGINES);
  const registry = new SlotRegistry({ engines: ENGINES, cells: 1 });
  const { table } = compileTable(snapshot, registry);
  const router = createRouterFactory(kind).load(table, registry.state);
  const row = table.inFlightRows[0]!;
  for (const slot of table.engineSlots.values()) {
    setEngine(registry.state, slot, slot % 10 === 0 ? STATE.out | STATE_HEALTHY : STATE_HEALTHY);
    countStreams(registry.state, 0, row, slot, 10);
  }
  const head = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
  const out = new Uint32Array(OUT_WORDS);
  const keys = sessionKeys(KEYS);
  const leastNs = new Float64Array(KEYS).fill(Number.POSITIVE_INFINITY);
  for (let round = 0; round < 5; round++) {
    for (const [at, key] of keys.entries()) {
      head.bytes.set(key);
      head.words[HEAD.sessionKeyBytes] = key.length;
      const fromMs = performance.now();
      for (let call = 0; call < CALLS; call++) router.route(head, BODY, out);
      leastNs[at] = Math.min(leastNs[at]!, ((performance.now() - fromMs) * 1e6) / CALLS);
      if (router.route(head, BODY, out) !== ROUTE_STATUS.ok || out[OUT.engine]! % 10 === 0)
        throw new Error(`key ${at} went to engine ${out[OUT.engine]}`);
    }
  }
  return leastNs.sort()[Math.floor(KEYS * 0.99)]!;
}
