import { parentPort, workerData } from "node:worker_threads";
import { createRouterFactory } from "@guidevane/selector";
import { SnapshotReading } from "./snapshot-reading.ts";
import type { SnapshotAnswer, SnapshotTask, SnapshotThreadStart } from "./snapshot-thread.ts";

/** The thread that reads snapshots: it routes nothing, so that it may take its time. */

const port = parentPort;
if (port === null) throw new Error("this module is the entry of a worker thread");
const { selector, state } = workerData as SnapshotThreadStart;
const reading = new SnapshotReading(createRouterFactory(selector), state);

async function answer(task: SnapshotTask): Promise<SnapshotAnswer> {
  try {
    return { ok: true, found: task.kind === "read" ? await reading.read(task.text) : reading.compile(task.slots) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}

port.on("message", async (task: SnapshotTask) => port.postMessage(await answer(task)));
