import { parentPort, workerData } from "node:worker_threads";
import { type ClusterSnapshot, parseClusterSnapshot } from "@guidevane/core";
import { createRouterFactory, namesOf, type SharedState, type SharedTable, translate } from "@guidevane/selector";

/** A thread that routes nothing: reads a snapshot's JSON, asks for the slots of its names, and gives the table. */
const { kind, state } = workerData as { kind: "ts" | "native"; state: SharedState };
const factory = createRouterFactory(kind);
const port = parentPort!;
let snapshot: ClusterSnapshot;
// Held until the next one: the request thread has loaded it by then.
let shared: SharedTable;

port.on("message", (message) => {
  if (message.json !== undefined) {
    snapshot = parseClusterSnapshot(new TextDecoder().decode(message.json));
    port.postMessage({ names: namesOf(snapshot) });
  } else {
    shared = factory.share(translate(snapshot, message.slots), state);
    port.postMessage({ table: shared.table });
  }
});
