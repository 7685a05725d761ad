import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Controls } from "./emulator-controls.ts";
import type { EmulatedEngineCounts } from "./engine-answers.ts";
import type { EngineModel } from "./engine-model.ts";
import { type EmulatedEngineOptions, EngineServer } from "./engine-server.ts";

export interface EmulatedEngine {
  /** Without a slash at its end. */
  readonly url: string;
  readonly port: number;
  readonly model: EngineModel;
  readonly counts: EmulatedEngineCounts;
  /** Changes how it behaves, as `POST /emulator` does. */
  control(change: Partial<Controls>): void;
  /** Calls `listener` after each admission, end and abort; returns the way to stop. */
  watch(listener: (counts: EmulatedEngineCounts) => void): () => void;
  /** Ends it at once, as `kill -9` would: the port refuses, open streams break. */
  kill(): Promise<void>;
}

/**
 * Starts an engine that speaks the OpenAI API (chat completions, completions, embeddings, models; streaming and not), with
 * health, metrics and errors as its kind has them. It batches continuously, as the lab's engines do, so that its latency
 * grows with its load as its profile says and a conversation finds its prefix again. Each word is one token; the end costs
 * one more step, so that an answer takes TTFT + outputTokens·TBOT.
 *
 * Faults and slowness are had by `control`, or from outside by `POST /emulator` from the same machine.
 *
 * @throws the listening error (such as EADDRINUSE)
 */
export async function startEmulatedEngine(options: EmulatedEngineOptions): Promise<EmulatedEngine> {
  const engine = new EngineServer(options);
  const server = createServer((request, response) => engine.take(request, response));
  // As uvicorn's, so that a client that keeps connections meets the same closings.
  server.keepAliveTimeout = 5000;
  await listen(server, options.port ?? 0, options.host ?? "127.0.0.1");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${options.host ?? "127.0.0.1"}:${port}`,
    port,
    model: engine.model,
    get counts() {
      return engine.answers.counts;
    },
    control: (change) => engine.control(change),
    watch: (listener) => engine.answers.watch(listener),
    kill: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}
