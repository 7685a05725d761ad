import { BroadcastChannel } from "node:worker_threads";
import { startGateway } from "@guidevane/gateway";
import { largeFleet } from "./fleet.ts";
import { watchTurns } from "./turns.ts";

/**
 * A gateway process of a large fleet that tells its parent its address, and, each time that it is asked, the longest turns
 * of its request threads since the last time.
 */
const [engines, classes, threads, control, engineUrl] = process.argv.slice(2) as string[];
const fleet = await largeFleet(Number(engines), Number(classes), (id) => `${engineUrl}/${id}`);
const any = "127.0.0.1:0";
const gateway = await startGateway({
  fleet,
  cluster: "c",
  listen: any,
  admin: any,
  logger: { info() {}, warn() {}, error: (fields: object, message: string) => console.error(message, fields) },
  controlUrls: [control!],
  threads: Number(threads),
  requestWorker: new URL("./request-worker.ts", import.meta.url),
});
const own = threads === "1" ? watchTurns() : null;

/** Of the request threads, since the last look. */
async function longestTurnMs(): Promise<number> {
  return own === null ? askWorkers(Number(threads)) : own();
}

function askWorkers(count: number): Promise<number> {
  const channel = new BroadcastChannel("longest turns");
  const found: number[] = [];
  return new Promise((resolve) => {
    channel.onmessage = (event) => {
      found.push((event as { readonly data: number }).data);
      if (found.length < count) return;
      channel.close();
      resolve(Math.max(...found));
    };
    channel.postMessage("ask");
  });
}

process.on("message", async () => process.send!({ longestTurnMs: await longestTurnMs() }));
process.on("disconnect", () => process.exit());
process.send!({ url: gateway.url });
