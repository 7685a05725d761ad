import { anthropic } from "../../test/src/real/anthropic-client.ts";
import { ENDLESS_PROMPT, MODEL, type RealClient } from "../../test/src/real/client.ts";
import { langchain } from "../../test/src/real/langchain-client.ts";
import { openaiChat, openaiResponses } from "../../test/src/real/openai-client.ts";
import { vercel } from "../../test/src/real/vercel-client.ts";
import { eventually, type Gateway } from "../../test/src/whole.ts";
import { HOLDS, since, type Vllm } from "./vllm-engine.ts";

const clients: readonly RealClient[] = [openaiChat, openaiResponses, anthropic, vercel, langchain];
/** Good and bad days of a vLLM behind a gateway; each prints what was done and what clients saw, a row each. */
export class VllmDays {
  readonly #gateway: Gateway;
  readonly #vllm: Vllm;

  constructor(gateway: Gateway, vllm: Vllm) {
    this.#gateway = gateway;
    this.#vllm = vllm;
  }

  async engineOf(session: string): Promise<{ id: string; snapshot: number }> {
    const { headers } = await this.#gateway.post(ask(1), { "x-session-id": session });
    return { id: headers.get("x-guidevane-engine") ?? "", snapshot: Number(headers.get("x-guidevane-snapshot")) };
  }

  /** Every client, through the gateway and straight: text, streamed and whole, and a function called. */
  async compareClients(): Promise<void> {
    const session = await this.#sessionAtVllm();
    for (const client of clients) {
      const answers = async (url: string): Promise<string> => {
        const at = { url, session };
        const said = [await client.say(at), await client.stream(at)];
        const used = [await client.useTool(at, false), await client.useTool(at, true)];
        return JSON.stringify({ said, used });
      };
      const seen = await attempt(async () => {
        const [through, straight] = [await answers(this.#gateway.url), await answers(this.#vllm.url)];
        return through === straight
          ? "the same through the gateway as straight"
          : `${through} but straight ${straight}`;
      });
      row(`${client.name}: text, stream, function`, seen);
    }
  }

  /** Forty streams at once, of which vLLM holds twelve. */
  async overload(): Promise<void> {
    const session = await this.#sessionAtVllm();
    for (const [name, url] of [
      ["straight", this.#vllm.url],
      ["through the gateway", this.#gateway.url],
    ] as const) {
      const ends = await Promise.all(Array.from({ length: 40 }, () => streamEnd(url, ask(200, true), session)));
      row(`overload: 40 streams at once, ${HOLDS.running} run and ${HOLDS.queued} wait, ${name}`, tally(ends));
    }
  }

  async pauseAndSleep(): Promise<void> {
    for (const [what, begin, end] of [
      ["paused", "/pause", "/resume"],
      ["asleep", "/sleep?level=1", "/wake_up"],
    ] as const) {
      const session = await this.#sessionAtVllm();
      const status = await this.#vllm.post(begin);
      const startMs = performance.now();
      const seen = await this.#stream(20, session);
      row(`${what} (${begin}: ${status}), a stream of the session that lives there`, `${seen} after ${since(startMs)}`);
      const next = await Promise.all(Array.from({ length: 8 }, () => this.#stream(20, session)));
      row(`${what}, eight more of that session`, tally(next));
      row(`${end}: ${await this.#vllm.post(end)}, then a stream`, await this.#stream(20, session));
    }
  }

  /** Open streams stay silent behind a port that refuses. */
  async terminate(): Promise<void> {
    await this.#fault("SIGTERM", () => this.#vllm.signal("SIGTERM"));
  }

  /** An error event, then `[DONE]`. */
  async killCore(): Promise<void> {
    await this.#fault("the core killed", () => this.#vllm.killCore());
  }

  async #fault(what: string, strike: () => void): Promise<void> {
    const session = await this.#sessionAtVllm();
    const first = Promise.withResolvers<void>();
    const cut = streamEnd(this.#gateway.url, ask(4000, true), session, () => first.resolve());
    await Promise.race([first.promise, cut]);
    const startMs = performance.now();
    strike();
    const after = Promise.all(Array.from({ length: HOLDS.running }, () => this.#stream(20, session)));
    row(`${what}: the stream under way`, `${await cut} after ${since(startMs)}`);
    row(`${what}: ${HOLDS.running} streams of its session begun at that moment`, tally(await after));
    row(`${what}: where its session is then`, (await this.engineOf(session)).id);
    await this.#vllm.kill();
  }

  /** What the gateway has counted of retries since it started. */
  async retries(): Promise<void> {
    const text = await (await fetch(`${this.#gateway.adminUrl}/metrics`)).text();
    const count = (result: string) =>
      Number(new RegExp(`^guidevane_retries_total\\{result="${result}"\\} (.*)$`, "m").exec(text)?.[1] ?? 0);
    row("retries so far, by the gateway's count", `${count("spent")} made, ${count("refused")} refused by the budget`);
  }

  #stream(tokens: number, session: string): Promise<string> {
    return streamEnd(this.#gateway.url, ask(tokens, true), session);
  }

  /** After a bad day it comes back by and by. */
  async #sessionAtVllm(): Promise<string> {
    let at = 0;
    await eventually(async () => (await this.engineOf(`s${++at}`)).id === "vllm", 60_000);
    return `s${at}`;
  }
}

function ask(tokens: number, stream = false): object {
  return { model: MODEL, messages: [{ role: "user", content: ENDLESS_PROMPT }], max_tokens: tokens, stream };
}

/** How a stream ends, in a word or two, as one who reads it byte for byte sees it. */
async function streamEnd(url: string, body: object, session: string, onFirst?: () => void): Promise<string> {
  const headers = { "content-type": "application/json", "x-session-id": session };
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
  if (answer.status !== 200) {
    await answer.text();
    return `status ${answer.status}`;
  }
  let text = "";
  try {
    const decoder = new TextDecoder();
    for await (const chunk of answer.body!) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes('"content":" ')) onFirst?.();
    }
  } catch {
    return text.includes('"error"') ? "an error event, then cut" : "cut";
  }
  const error = /^data: \{"error":.*$/m.exec(text)?.[0];
  if (error !== undefined) return `200 with an error event of code ${/"code": ?"?(\w+)/.exec(error)?.[1]}`;
  return text.includes("data: [DONE]") ? "whole" : "ended without [DONE]";
}

function tally(ends: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const end of ends) counts.set(end, (counts.get(end) ?? 0) + 1);
  return [...counts].map(([end, count]) => `${count} × ${end}`).join(", ");
}

async function attempt(task: () => Promise<string>): Promise<string> {
  return task().catch((error: unknown) => `FAILED: ${error instanceof Error ? error.message : error}`);
}

function row(what: string, seen: string): void {
  console.log(`| ${what} | ${seen} |`);
}
