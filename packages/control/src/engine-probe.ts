import type { EngineSpec, ProbeSpec } from "@guidevane/core";
import { Agent, request } from "undici";

/** Largest page of metrics read. A vLLM with eight ranks gives about 1 MB. */
export const MAX_PAGE_BYTES = 10_000_000;

/** How one question to an engine went. */
export type ProbeOutcome =
  | { readonly kind: "answer"; readonly status: number; readonly body: string }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "timeout"; readonly message: string }
  | { readonly kind: "too-large"; readonly message: string }
  | { readonly kind: "failed"; readonly message: string };

/** Asks engines questions over HTTP, each within a time limit and a size limit. Never throws. */
export interface Prober {
  ask(engine: EngineSpec, probe: ProbeSpec, path: string): Promise<ProbeOutcome>;
  close(): Promise<void>;
}

export function createProber(timeoutMs: number): Prober {
  const agent = new Agent({
    connect: { timeout: timeoutMs },
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connections: 2,
    pipelining: 1,
  });
  const stop = new AbortController();
  return {
    async ask(engine, probe, path) {
      try {
        const limit = AbortSignal.any([AbortSignal.timeout(timeoutMs), stop.signal]);
        const { statusCode, body } = await request(probeUrl(engine, probe, path), {
          dispatcher: agent,
          signal: limit,
          headers: { accept: "text/plain;version=0.0.4, */*;q=0.5", "user-agent": "guidevane" },
        });
        const chunks: Uint8Array[] = [];
        let bytes = 0;
        for await (const chunk of body as AsyncIterable<Uint8Array>) {
          bytes += chunk.length;
          if (bytes > MAX_PAGE_BYTES) {
            body.destroy();
            return { kind: "too-large", message: `answer is over ${MAX_PAGE_BYTES} bytes` };
          }
          chunks.push(chunk);
        }
        return { kind: "answer", status: statusCode, body: Buffer.concat(chunks).toString() };
      } catch (error) {
        return failure(error, timeoutMs);
      }
    },
    async close() {
      stop.abort();
      await agent.destroy();
    },
  };
}

/** Under the engine's own path prefix, at its own port or the probe's. */
export function probeUrl(engine: Pick<EngineSpec, "url">, probe: ProbeSpec, path: string): string {
  const url = new URL(engine.url);
  if (probe.port !== null) url.port = String(probe.port);
  return url.href.replace(/\/+$/, "") + path;
}

function failure(error: unknown, timeoutMs: number): ProbeOutcome {
  const { name, message } = error as Error;
  // An aborted request has a number here, the others a name.
  const code = String((error as NodeJS.ErrnoException).code ?? "");
  if (code === "ECONNREFUSED") return { kind: "refused", message: "connection refused" };
  if (name === "TimeoutError" || code.includes("TIMEOUT"))
    return { kind: "timeout", message: `no answer within ${timeoutMs} ms` };
  return { kind: "failed", message: code.startsWith("E") || code.startsWith("UND_") ? code : message };
}
