import { Agent, request } from "node:http";

/** One streamed answer as its client saw it. Times are ms from sending. */
export interface Streamed {
  /** null = whole. */
  readonly failure: string | null;
  /** `x-guidevane-engine` of the answer; null straight from an engine. */
  readonly engine: string | null;
  /** To the first text; NaN where none came. */
  readonly ttftMs: number;
  readonly e2eMs: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** Asks one server for streamed chat answers. */
export class StreamClient {
  readonly #url: string;
  /** llama.cpp promises to keep connections that it closes. */
  readonly #agent: Agent | false;

  constructor(url: string, keepsConnections: boolean) {
    this.#url = `${url}/v1/chat/completions`;
    this.#agent = keepsConnections ? new Agent({ keepAlive: true, maxFreeSockets: 256 }) : false;
  }

  /** Never rejects: what went wrong is in the answer. */
  ask(body: string, headers: Readonly<Record<string, string>> = {}): Promise<Streamed> {
    const startMs = performance.now();
    return new Promise((resolve) => {
      let engine: string | null = null;
      let ttftMs = Number.NaN;
      let text = "";
      const end = (failure: string | null) => {
        const count = (name: string) => Number(new RegExp(`"${name}":(\\d+)`).exec(text)?.[1] ?? 0);
        const tokens = { promptTokens: count("prompt_tokens"), outputTokens: count("completion_tokens") };
        resolve({ failure, engine, ttftMs, e2eMs: performance.now() - startMs, ...tokens });
      };
      const fail = (error: NodeJS.ErrnoException) => end(error.code ?? error.message);
      const sent = request(
        this.#url,
        {
          method: "POST",
          agent: this.#agent,
          headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body), ...headers },
        },
        (response) => {
          const named = response.headers["x-guidevane-engine"];
          engine = typeof named === "string" ? named : null;
          response.setEncoding("utf8");
          response.on("data", (chunk: string) => {
            text += chunk;
            if (Number.isNaN(ttftMs) && FIRST_TEXT.test(text)) ttftMs = performance.now() - startMs;
          });
          response.on("error", fail);
          response.on("end", () => {
            if (response.statusCode !== 200) end(`status ${response.statusCode}: ${text.slice(0, 200)}`);
            else end(text.endsWith("data: [DONE]\n\n") ? null : "stream without its end");
          });
        },
      );
      sent.on("error", fail);
      sent.end(body);
      const giveUp = setTimeout(() => sent.destroy(new Error(`no end within ${LONGEST_MS} ms`)), LONGEST_MS);
      sent.on("close", () => clearTimeout(giveUp));
    });
  }

  close(): void {
    if (this.#agent !== false) this.#agent.destroy();
  }
}

const LONGEST_MS = 20_000;
const FIRST_TEXT = /"content":"[^"]/;
