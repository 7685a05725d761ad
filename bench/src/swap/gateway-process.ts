import { BroadcastChannel } from "node:worker_threads";
import { startGateway } from "@guidevane/gateway";
import { largeFleet } from "./fleet.ts";
import { type Turn, watchTurns } from "./turns.ts";

/**
 * A gateway process of a large fleet that tells its parent its addresses, and, each time that it is asked, the longest turn
 * of a request thread since the last time.
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

/** Of one request thread, since the last look. */
async function longestTurn(): Promise<Turn> {
  return own === null ? askWorker() : own();
}

function askWorker(): Promise<Turn> {
  const channel = new BroadcastChannel("longest turns");
  return new Promise((resolve) => {
    channel.onmessage = (event) => {
      channel.close();
      resolve((event as { readonly data: Turn }).data);
    };
    channel.postMessage("ask");
  });
}

process.on("message", async () => process.send!(await longestTurn()));
process.on("disconnect", () => process.exit());
process.send!({ url: gateway.url, adminUrl: gateway.adminUrl });
