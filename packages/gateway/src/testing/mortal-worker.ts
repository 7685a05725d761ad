import { BroadcastChannel, threadId } from "node:worker_threads";
import "../request-worker.ts";
import { MORTALS, type MortalOrder } from "./mortals.ts";

/** A request worker that dies when a test says so, as it would on an error that nobody caught. */

const channel = new BroadcastChannel(MORTALS);
channel.onmessage = (event) => {
  const order = (event as { readonly data: MortalOrder | { readonly living: number } }).data;
  if (order === null) channel.postMessage({ living: threadId });
  else if (order === threadId)
    setImmediate(() => {
      throw new Error("told to die");
    });
};
channel.unref();
