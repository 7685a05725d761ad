import { BroadcastChannel, workerData } from "node:worker_threads";
import { watchTurns } from "./turns.ts";

/**
 * A request worker of the gateway. The first one tells its longest turns when it is asked; to watch costs a core, which two
 * would take from the rest of the process.
 */
await import(new URL("./request-worker.ts", import.meta.resolve("@guidevane/gateway")).href);

if ((workerData as { readonly thread: number }).thread === 0) {
  const look = watchTurns();
  const channel = new BroadcastChannel("longest turns");
  channel.onmessage = (event) => {
    if ((event as { readonly data: unknown }).data === "ask") channel.postMessage(look());
  };
}
