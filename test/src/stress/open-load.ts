import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { seededRandom } from "@guidevane/core";
import { MODEL } from "../whole.ts";

/** How one request went, as its client saw it. Times are on `performance.now()`, ms. */
export interface Seen {
  readonly key: number;
  readonly stream: boolean;
  readonly sentMs: number;
  /** First byte of a good answer's body; null where none came. */
  readonly firstByteMs: number | null;
  readonly endMs: number;
  /** null = a whole answer; else what was wrong. */
  readonly failure: string | null;
  /** Its client left on purpose. */
  readonly left: boolean;
  /** Base URL of the gateway that it was sent to last. */
  readonly gateway: string;
  readonly engine: string | null;
  readonly reason: string | null;
  readonly version: number;
}

export interface OpenLoadOptions {
  /** Base URLs of gateways: the first is asked, and the next where a connection to it is refused, as behind a balancer of connections. */
  readonly urls: () => readonly string[];
  readonly rateRps: number;
  readonly seed: number;
  /** Conversations that requests are drawn from. */
  readonly keys?: number;
  readonly maxTokens?: number;
  /** Part of the requests that ask for a stream, 0..1. */
  readonly streamPart?: number;
  /** Part of the clients that leave before the end, 0..1, after up to `leaveWithinMs`. */
  readonly leavePart?: number;
  readonly leaveWithinMs?: number;
  readonly onSeen: (seen: Seen) => void;
}

/** Poisson arrivals whether or not the ones before were answered: an open loop. Each is a later turn of its conversation. */
export class OpenLoad {
  rateRps: number;
  readonly #options: OpenLoadOptions;
  readonly #random: () => number;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 256 });
  readonly #open = new Set<Promise<void>>();
  #timer: NodeJS.Timeout;
  #nextMs: number;
  /** The most that a request was sent after its time: above some ten ms this process was too slow. */
  lateMs = 0;

  constructor(options: OpenLoadOptions) {
    this.#options = options;
    this.rateRps = options.rateRps;
    this.#random = seededRandom(options.seed);
    this.#nextMs = performance.now() + this.#gapMs();
    this.#timer = setTimeout(() => this.#turn(), 0);
  }

  /** No more arrivals; resolves when all have ended. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await Promise.all(this.#open);
    this.#agent.destroy();
  }

  #turn(): void {
    const nowMs = performance.now();
    while (this.#nextMs <= nowMs) {
      this.lateMs = Math.max(this.lateMs, nowMs - this.#nextMs);
      const asked = new AskedRequest(this.#agent, this.#options, this.#random);
      const ended = asked.ended.then(this.#options.onSeen).finally(() => this.#open.delete(ended));
      this.#open.add(ended);
      this.#nextMs += this.#gapMs();
    }
    this.#timer = setTimeout(() => this.#turn(), Math.max(1, this.#nextMs - nowMs));
  }

  #gapMs(): number {
    return (-Math.log(1 - this.#random()) * 1000) / this.rateRps;
  }
}

/** One request of a client that has no retries of its own. */
export class AskedRequest {
  readonly ended: Promise<Seen>;
  #gateway = "";
  #engine: string | null = null;
  #sent: ClientRequest | null = null;
  #left = false;
  #reason: string | null = null;
  #shedReason: string | null = null;
  #version = 0;
  #status = 0;
  #firstByteMs: number | null = null;
  #text = "";

  constructor(agent: Agent, options: Omit<OpenLoadOptions, "rateRps" | "seed" | "onSeen">, random: () => number) {
    const { keys = 1000, maxTokens = 16, streamPart = 0.5, leavePart = 0, leaveWithinMs = 60 } = options;
    const key = Math.floor(random() * keys);
    const stream = random() < streamPart;
    const sentMs = performance.now();
    this.ended = new Promise((resolve) => {
      const end = (failure: string | null): void => {
        clearTimeout(leaving);
        resolve({
          ...{ key, stream, sentMs, firstByteMs: this.#firstByteMs, endMs: performance.now() },
          ...{ failure: this.#left ? null : failure, left: this.#left },
          ...{ gateway: this.#gateway, engine: this.#engine, reason: this.#reason, version: this.#version },
        });
      };
      const urls = options.urls();
      const ask = (at: number): void => {
        this.#sent = this.#ask(agent, urls[at]!, key, bodyOf(key, stream, maxTokens), stream, (failure) => {
          if (failure === "ECONNREFUSED" && at + 1 < urls.length && !this.#left) ask(at + 1);
          else end(failure);
        });
      };
      const leaves = random() < leavePart;
      const leaving = setTimeout(() => this.#leave(leaves), leaves ? random() * leaveWithinMs : 0);
      ask(0);
    });
  }

  #leave(leaves: boolean): void {
    if (!leaves) return;
    this.#left = true;
    this.#sent?.destroy();
  }

  #ask(agent: Agent, url: string, key: number, body: string, stream: boolean, end: (failure: string | null) => void) {
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "x-session-id": `stress-${key}`,
    };
    this.#gateway = url;
    const sent = request(`${url}/v1/chat/completions`, { method: "POST", agent, headers });
    const fail = (error: NodeJS.ErrnoException): void => {
      const why = error.code ?? error.message;
      end(sent.reusedSocket ? `${why} (kept connection)` : why);
    };
    sent.once("error", fail);
    sent.once("response", (response) => {
      this.#head(response);
      response.on("data", (chunk: Buffer) => {
        if (this.#status === 200) this.#firstByteMs ??= performance.now();
        this.#text += chunk.toString("latin1");
      });
      response.once("error", fail);
      response.once("end", () => end(this.#judge(stream)));
    });
    sent.end(body);
    return sent;
  }

  #head({ headers, statusCode }: IncomingMessage): void {
    this.#status = statusCode ?? 0;
    this.#engine = textOf(headers["x-guidevane-engine"]);
    this.#shedReason = textOf(headers["x-guidevane-shed-reason"]);
    this.#reason = textOf(headers["x-guidevane-reason"]);
    this.#version = Number(headers["x-guidevane-snapshot"] ?? 0);
  }

  #judge(stream: boolean): string | null {
    if (this.#status !== 200) {
      const code = /"code":"?(\w+)/.exec(this.#text)?.[1] ?? "";
      return `http ${this.#status} ${code} ${this.#shedReason ?? ""}`.trim();
    }
    if (!stream) return this.#text.includes('"finish_reason"') ? null : "an answer without an end";
    return this.#text.trimEnd().endsWith("data: [DONE]") ? null : "a stream without its end";
  }
}

/** About 64 tokens, and an earlier answer in it: a conversation's first request may be placed by load, later ones follow. */
function bodyOf(key: number, stream: boolean, maxTokens: number): string {
  const messages = [
    { role: "user", content: `conversation ${key}: ${"what is a guide vane for? ".repeat(6)}` },
    { role: "assistant", content: "It turns a flow." },
    { role: "user", content: "And then?" },
  ];
  return JSON.stringify({ model: MODEL, stream, max_tokens: maxTokens, messages });
}

function textOf(header: string | string[] | undefined): string | null {
  return typeof header === "string" ? header : null;
}
