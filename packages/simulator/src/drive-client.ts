import { Agent, request } from "node:http";
import type { Clock } from "@guidevane/core";

/** How one driven request ended, as its client saw it. Times are from sending, ms. */
export interface Driven {
  /** null = a whole answer; else what was wrong, such as `http 503 no_eligible_engine` or `ECONNRESET`. */
  readonly failure: string | null;
  /** `x-guidevane-engine` of the answer; null where there was none. */
  readonly engine: string | null;
  /** To the first byte of the answer's body; null where none came. */
  readonly firstByteMs: number | null;
  readonly totalMs: number;
}

/** Sends requests to one gateway over connections that are kept. */
export class DriveClient {
  readonly #base: URL;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 256 });
  readonly #clock: Clock;

  constructor(baseUrl: string, clock: Clock) {
    this.#base = new URL(baseUrl);
    this.#clock = clock;
  }

  /** Never rejects: what went wrong is in the answer. */
  post(path: string, headers: Record<string, string>, body: string, stream: boolean): Promise<Driven> {
    const startMs = this.#clock.nowMs();
    const elapsedMs = () => this.#clock.nowMs() - startMs;
    return new Promise((resolve) => {
      let engine: string | null = null;
      let firstByteMs: number | null = null;
      const end = (failure: string | null) => resolve({ failure, engine, firstByteMs, totalMs: elapsedMs() });
      const fail = (error: NodeJS.ErrnoException) => end(error.code ?? error.message);
      const sent = request(
        new URL(path, this.#base),
        {
          method: "POST",
          agent: this.#agent,
          headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers },
        },
        (response) => {
          const named = response.headers["x-guidevane-engine"];
          engine = typeof named === "string" ? named : null;
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => {
            firstByteMs ??= elapsedMs();
            chunks.push(chunk);
          });
          response.on("error", fail);
          response.on("end", () => end(judge(response.statusCode ?? 0, Buffer.concat(chunks).toString(), stream)));
        },
      );
      sent.on("error", fail);
      sent.end(body);
    });
  }

  /** Whether anything answers there. Never rejects. */
  isListening(): Promise<boolean> {
    return new Promise((resolve) => {
      const asked = request(new URL("/v1/models", this.#base), { agent: this.#agent }, (response) => {
        response.resume();
        resolve(true);
      });
      // Refused is the answer that was asked for.
      asked.on("error", () => resolve(false));
      asked.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function judge(status: number, body: string, stream: boolean): string | null {
  if (status === 200) {
    if (!stream) return body.endsWith("}") ? null : "not a whole JSON answer";
    return body.endsWith("data: [DONE]\n\n") ? null : "stream without its end";
  }
  try {
    const { error } = JSON.parse(body) as { error?: { code?: unknown } };
    return `http ${status} ${String(error?.code ?? "")}`.trim();
  } catch {
    // A proxy's page or nothing: the status says enough.
    return `http ${status}`;
  }
}
