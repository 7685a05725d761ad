import { BroadcastChannel } from "node:worker_threads";
import { watchTurns } from "./turns.ts";

/** A request worker of the gateway that tells its longest turns when it is asked. */
await import(new URL("./request-worker.ts", import.meta.resolve("@guidevane/gateway")).href);

const look = watchTurns();
const channel = new BroadcastChannel("longest turns");
channel.onmessage = (event) => {
  if ((event as { readonly data: unknown }).data === "ask") channel.postMessage(look());
};
