import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { createRouterFactory } from "./create-router.ts";
import { CHAT_BODY, Driver, nativeMissing } from "./driver.fixture.ts";
import { clearThread, countStreams, streamsOfCell } from "./shared-state.ts";
import { SlotRegistry } from "./slots.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";
import { holdSlots, namesOf, translate } from "./table.ts";

const snapshot = makeSnapshot([
  {
    class: "chat",
    engines: [
      { id: "a", weight: 0.5 },
      { id: "b", weight: 0.3 },
      { id: "c", weight: 0.2 },
    ],
  },
]);

/** Translates the snapshot as a thread that routes nothing, then loads what it was given and answers a body's key. */
const program = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { index, kind, state } = workerData;
  import(index).then(({ createRouterFactory, translate, HEAD_WORDS, HEAD_BYTES, OUT_WORDS }) => {
    const factory = createRouterFactory(kind);
    let held = null;
    parentPort.on("message", ({ snapshot, slots, table, body }) => {
      if (snapshot !== undefined) {
        held = factory.share(translate(snapshot, slots), state);
        return parentPort.postMessage(held.table);
      }
      const out = new Uint32Array(OUT_WORDS);
      const head = { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
      const status = factory.load(table, state).route(head, body, out);
      parentPort.postMessage({ status, out });
    });
  });
`;

for (const kind of ["ts", "native"] as const) {
  const missing = kind === "native" ? nativeMissing : null;
  const title = `a table is made on one thread and routed by on others (${kind}${missing === null ? "" : `; skipped: ${missing}`})`;
  it.skipIf(missing !== null)(title, async () => {
    const registry = new SlotRegistry({ engines: 8, cells: 2, threads: 3, moves: 64 });
    const { slots } = holdSlots(namesOf(snapshot), registry);
    const workerData = { index: new URL("./index.ts", import.meta.url).href, kind, state: registry.state };
    const workers = [0, 1, 2].map(() => new Worker(program, { eval: true, workerData }));
    const answer = async (worker: Worker, message: unknown) => {
      worker.postMessage(message);
      const [answered] = await once(worker, "message");
      return answered;
    };
    const table = await answer(workers[0]!, { snapshot, slots });
    expect(table.columns).toEqual(translate(snapshot, slots).columns);
    expect(table.columns.words.buffer).toBeInstanceOf(SharedArrayBuffer);
    const own = new Driver(createRouterFactory("ts"), snapshot, registry);
    own.route(CHAT_BODY);
    for (const worker of workers) {
      const { status, out } = await answer(worker, { table, body: CHAT_BODY });
      expect([status, ...out]).toEqual([0, ...own.out]);
    }
    await Promise.all(workers.map((worker) => worker.terminate()));
  });
}

it("streams of all threads count, and those of a thread that died no more", () => {
  const { state } = new SlotRegistry({ engines: 4, cells: 2, threads: 3, moves: 8 });
  countStreams(state, 0, 1, 2, 3);
  countStreams(state, 2, 1, 2, 4);
  countStreams(state, 2, 1, 3, 1);
  countStreams(state, 2, 0, 0, 5);
  expect([streamsOfCell(state, 0), streamsOfCell(state, 1)]).toEqual([5, 8]);
  clearThread(state, 2);
  expect([streamsOfCell(state, 0), streamsOfCell(state, 1)]).toEqual([0, 3]);
});
