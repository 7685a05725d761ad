import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually, type Gateway, Whole } from "../whole.ts";
import { anthropic, countTokens } from "./anthropic-client.ts";
import { ENDLESS_PROMPT, type Endpoint, MODEL, PROMPT, type Raised, type RealClient, type Wish } from "./client.ts";
import { findPython, type LlamaEngine, LlamaEngines, SLOT_TOKENS } from "./engines.ts";
import { langchain } from "./langchain-client.ts";
import { openaiChat, openaiResponses } from "./openai-client.ts";
import { Tap } from "./tap.ts";
import { vercel } from "./vercel-client.ts";

/** Four real llama.cpp servers behind a gateway, and the clients that people use in front of it. */

const found = findPython();
const skipped = "missing" in found ? ` (skipped: ${found.missing})` : "";
const clients: readonly RealClient[] = [openaiChat, openaiResponses, anthropic, vercel, langchain];
const SLOTS = 2;

describe.skipIf(skipped !== "")(`real engines and real clients${skipped}`, () => {
  const whole = new Whole();
  const engines = new Map<string, LlamaEngine>();
  let llama: LlamaEngines;
  let gateway: Gateway;
  let direct: Endpoint;
  /** On the way to e1. */
  let tap: Tap;

  beforeAll(async () => {
    llama = await LlamaEngines.make((found as { python: string }).python);
    whole.onStop(() => llama.stop());
    for (const id of ["e0", "e1", "e2", "e3"]) engines.set(id, await llama.start(SLOTS));
    direct = { url: engines.get("e0")!.url };
    tap = await Tap.before(engines.get("e1")!.url);
    whole.onStop(() => tap.stop());
    const health = { path: "/health", intervalMs: 200 };
    const urls = [...engines].map(([id, { url }]) => [id, id === "e1" ? tap.url : url] as const);
    whole.writeFleet(
      Object.fromEntries(urls.map(([id, url]) => [id, { url, models: [MODEL], kind: "openai", health }])),
      {
        classes: { chat: { model: MODEL } },
        // So that a session is where it was seen to be: by load, a first request may go to another.
        gateway: { placement: "home" },
      },
    );
    const control = await whole.control();
    gateway = await whole.gateway(control.url);
    await eventually(async () => (await engineOf({ session: "any" })).snapshot > 0);
  });
  afterAll(() => whole.stop());
  // A test that fails must not leave the engines at work for the next one.
  afterEach(() => {
    for (const each of underWay.splice(0)) each.abort();
  });

  /** Where a session's requests go, and by which snapshot. */
  async function engineOf({ session }: { session: string }): Promise<{ id: string; snapshot: number }> {
    const request = { model: MODEL, messages: [{ role: "user", content: PROMPT }], max_tokens: 1 };
    const { headers } = await gateway.post(request, { "x-session-id": session });
    return { id: headers.get("x-guidevane-engine") ?? "", snapshot: Number(headers.get("x-guidevane-snapshot")) };
  }

  async function sessionAt(id: string): Promise<string> {
    for (let at = 0; at < 200; at++) if ((await engineOf({ session: `s${at}` })).id === id) return `s${at}`;
    throw new Error(`no session of 200 lives at ${id}`);
  }

  describe.each(clients)("$name", (client) => {
    it("says the engine's text, whole and streamed, with the same finish and tokens as straight", async () => {
      for (const way of ["say", "stream"] as const) {
        const through = await client[way](gateway);
        expect(through.text).toBe(llama.expected.text);
        expect(through.completionTokens).toBe(llama.expected.tokens);
        expect(through).toEqual(await client[way](direct));
      }
    });

    it("streams in pieces as they come", async () => {
      const pieces: string[] = [];
      await client.stream(gateway, { onText: (text) => pieces.push(text) });
      expect(pieces.filter((piece) => piece !== "").length).toBeGreaterThan(10);
      expect(pieces.join("")).toBe(llama.expected.text);
    });

    it.each([false, true])("calls a function and goes on with what it gave (streaming: %s)", async (streaming) => {
      const { call, after } = await client.useTool(gateway, streaming);
      expect(call).toEqual(llama.expected.tool);
      expect(after.text).toBe(llama.expected.text);
      expect({ call, after }).toEqual(await client.useTool(direct, streaming));
    });

    it("has eight answers at once, each whole", async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => client.stream(gateway)));
      expect(answers.map(({ text }) => text)).toEqual(Array(8).fill(llama.expected.text));
    });

    it.each(["say", "stream"] as const)(
      "raises for a prompt that is too long what it raises straight (%s)",
      async (way) => {
        const wish = { prompt: "word ".repeat(SLOT_TOKENS + 1) };
        const through = await errorOf(client, way, gateway, wish);
        expect(through.status ?? 400).toBe(400);
        expect(through.message).toContain("exceeds the available context size");
        expect(through).toEqual(await errorOf(client, way, direct, wish));
      },
    );

    it("raises its error of a thing that is not there for a model that no engine serves", async () => {
      const through = await errorOf(client, "say", gateway, { model: "none-such" });
      expect(through.status).toBe(404);
      expect(through.message).toContain("none-such");
      if (client === openaiChat || client === openaiResponses || client === langchain)
        expect(through).toMatchObject({ class: "NotFoundError", code: "model_not_found" });
      if (client === anthropic) expect(through).toMatchObject({ class: "NotFoundError", type: "not_found_error" });
      if (client === vercel) expect(through).toMatchObject({ class: "APICallError", code: "model_not_found" });
    });

    it("frees the engine when it breaks off, in the middle of a stream and before its head", async () => {
      const engine = engines.get("e1")!;
      const at = { url: gateway.url, session: await sessionAt("e1") };
      const started = Array.from({ length: SLOTS }, () => begun(client, at, ENDLESS_PROMPT));
      await Promise.all(started.map((each) => each.firstText));
      // llama.cpp gives no head to a request that waits for a slot.
      const waiting = begun(client, at, ENDLESS_PROMPT);
      await eventually(async () => (await engine.load()).waiting === 1);

      const closes = tap.latestCloses();
      waiting.abort();
      expect(await closes).toBeLessThan(1000);
      expect((await engine.load()).processing).toBe(SLOTS);
      for (const each of started) each.abort();
      await eventually(async () => (await engine.load()).processing === 0, ABORT_SEEN_WITHIN_MS);
      for (const { end } of [waiting, ...started]) expect(await end).toBe("broken off");
    });
  });

  it("frees the engine of a prompt that it is still reading", async () => {
    const engine = engines.get("e1")!;
    const at = { url: gateway.url, session: await sessionAt("e1") };
    const reading = begun(openaiChat, at, "word ".repeat(SLOT_TOKENS / 2 - 200));
    await eventually(async () => (await engine.load()).processing === 1, 5_000, 1);
    const closes = tap.latestCloses();
    reading.abort();
    expect(await closes).toBeLessThan(1000);
    await eventually(async () => (await engine.load()).processing === 0, ABORT_SEEN_WITHIN_MS);
    expect(await reading.end).toBe("broken off");
  });

  it("counts tokens for the Anthropic SDK as the engine does", async () => {
    expect(await countTokens(gateway)).toBe(await countTokens(direct));
  });

  it("lets no client see that an engine is killed and comes back, but those whose answer it was", async () => {
    const engine = engines.get("e2")!;
    const session = await sessionAt("e2");
    const at = { url: gateway.url, session };
    const cut = begun(openaiChat, at, ENDLESS_PROMPT);
    await cut.firstText;

    await engine.kill();
    expect(await cut.end).not.toBe("whole");
    const meanwhile = await Promise.all(clients.map((client) => client.stream(at)));
    expect(meanwhile.map(({ text }) => text)).toEqual(clients.map(() => llama.expected.text));
    expect((await engineOf({ session })).id).not.toBe("e2");

    await engine.start();
    // It comes back by and by: of many sessions some are its own again at once.
    let sessions = 0;
    await eventually(async () => (await engineOf({ session: `back-${sessions++}` })).id === "e2");
    expect((await openaiChat.stream(at)).text).toBe(llama.expected.text);
  });
});

/** The gateway has a second to close the engine's socket, and is held to it; the rest is for the engine to look. */
const ABORT_SEEN_WITHIN_MS = 10_000;

async function errorOf(client: RealClient, way: "say" | "stream", at: Endpoint, wish: Wish): Promise<Raised> {
  try {
    await client[way](at, wish);
  } catch (error) {
    return client.describe(error);
  }
  throw new Error("no error was raised");
}

const underWay: AbortController[] = [];

/** A stream under way: its first text, and how it ends. */
function begun(client: RealClient, at: Endpoint, prompt: string) {
  const breaker = new AbortController();
  underWay.push(breaker);
  let heard: () => void;
  const firstText = new Promise<void>((resolve) => {
    heard = resolve;
  });
  const end = client.stream(at, { prompt, signal: breaker.signal, onText: () => heard() }).then(
    () => "whole",
    (error: unknown) => (breaker.signal.aborted ? "broken off" : `failed: ${error}`),
  );
  return { firstText, end, abort: () => breaker.abort() };
}
