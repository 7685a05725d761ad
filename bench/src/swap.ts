import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type ClusterSnapshot, encodeRing, seededRandom } from "@guidevane/core";
import {
  buildRing,
  createRouterFactory,
  HEAD_BYTES,
  HEAD_WORDS,
  holdSlots,
  OUT_WORDS,
  type Router,
  type RoutingTable,
  SlotRegistry,
} from "@guidevane/selector";
import { ringSnapshot } from "./inputs.ts";

const SWAPS = 5;

/**
 * The longest time, ms, for which a thread that routes can't, while another thread reads a snapshot of so many engines and
 * classes and it takes the new table: the median of some swaps. Counted in the thread's own CPU time: what other processes
 * take from it on a busy machine is no pause of ours.
 */
export async function swapPauseMs(kind: "ts" | "native", engines: number, classes: number): Promise<number> {
  const text = Buffer.from(JSON.stringify(await largeSnapshot(engines, classes)));
  const json = new Uint8Array(new SharedArrayBuffer(text.length));
  json.set(text);
  const registry = new SlotRegistry({ engines, cells: classes });
  const workerData = { kind, state: registry.state };
  const execArgv = ["--conditions=@guidevane/source"];
  const worker = new Worker(new URL("./swap-worker.ts", import.meta.url), { workerData, execArgv });
  const factory = createRouterFactory(kind);
  const head = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
  const body = new TextEncoder().encode('{"model":"m0"}');
  const out = new Uint32Array(OUT_WORDS);
  let router: Router | null = null;
  const pauses: number[] = [];
  for (let swap = 0; swap < SWAPS; swap++) {
    let longestMs = 0;
    let lastMs = ownCpuMs();
    let isOver = false;
    const spin = (): void => {
      router?.route(head, body, out);
      const nowMs = ownCpuMs();
      longestMs = Math.max(longestMs, nowMs - lastMs);
      lastMs = nowMs;
      if (!isOver) setImmediate(spin);
    };
    setImmediate(spin);
    worker.postMessage({ json });
    const [{ names }] = await once(worker, "message");
    worker.postMessage({ slots: holdSlots(names, registry).slots });
    const [{ table }] = (await once(worker, "message")) as [{ table: RoutingTable }];
    router = factory.load(table, registry.state);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    isOver = true;
    pauses.push(longestMs);
  }
  await worker.terminate();
  return pauses.sort((a, b) => a - b)[SWAPS >> 1]!;
}

/** CPU time of this thread. */
function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** So many classes, each of a model of its own and a ring over a fifth of the engines. */
async function largeSnapshot(engines: number, classes: number): Promise<ClusterSnapshot> {
  const random = seededRandom(classes);
  const base = await ringSnapshot(engines);
  const [cell] = base.cells;
  const [spec] = Object.values(base.classes);
  const names = Array.from({ length: classes }, (_, i) => `c${i}`);
  const ids = cell!.engines;
  return {
    ...base,
    classes: Object.fromEntries(names.map((name, i) => [name, { ...spec!, model: `m${i}` }])),
    cells: names.map((name) => {
      const weights = ids.map(() => (random() < 0.2 ? random() : 0));
      const sum = weights.reduce((total, weight) => total + weight, 0);
      const { owners } = buildRing(ids, weights, 4096);
      const parts = weights.map((weight) => weight / sum);
      return { ...cell!, class: name, weights: parts, ring: encodeRing(owners, ids.length) };
    }),
  };
}
