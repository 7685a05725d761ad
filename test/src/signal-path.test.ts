import type { EmulatedEngine } from "@guidevane/simulator";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually, type Gateway, MODEL, Whole } from "./whole.ts";

/** The signal path, end to end: what engines say of themselves and an operator says of them reaches who must know. */

let whole: Whole;
let engines: Readonly<Record<"one" | "two", EmulatedEngine>>;
let control: string;
let gateway: Gateway;

beforeEach(async () => {
  whole = new Whole();
  engines = { one: await whole.engine(), two: await whole.engine() };
  // An engine without replicas refuses what comes before that is known, and no traffic before has earned so many retries.
  const rest = { gateway: { retry: { startTokens: 10 } } };
  whole.writeFleet({ one: { url: engines.one.url }, two: { url: engines.two.url } }, rest);
  control = (await whole.control()).url;
  gateway = await whole.gateway(control);
  await gateway.hasSnapshot();
});
afterEach(() => whole.stop());

const chat = (content: string, rest: Record<string, unknown> = {}) => ({
  model: MODEL,
  messages: [{ role: "user" as const, content }],
  max_tokens: 2,
  ...rest,
});

describe("what an engine says of itself", () => {
  it("is at the control plane and at the gateway, dated, while a stream runs and after it", async () => {
    const stream = await gateway.client.chat.completions.create({ ...chat("long"), max_tokens: 5000, stream: true });
    const name = engines.one.counts.inFlight === 1 ? "one" : "two";
    for (const url of [control, gateway.adminUrl]) {
      await eventually(async () => (await signalsOf(url, name)).running?.value === 1);
      const { running } = await signalsOf(url, name);
      expect(running).toMatchObject({ state: "fresh" });
      expect(running!.ageMs).toBeLessThan(10_000);
    }
    stream.controller.abort();
    for (const url of [control, gateway.adminUrl])
      await eventually(async () => (await signalsOf(url, name)).running?.value === 0);
  });

  it("of its replicas takes it out when none is ready, and back when one is", async () => {
    engines.one.control({ readyReplicas: 0 });
    await answeredBy("two");
    engines.one.control({ readyReplicas: 1 });
    await answeredBy("one,two");
  });
});

describe("an operator who drains an engine", () => {
  it("keeps new requests from it within a second, lets its streams finish, and gives it back", async () => {
    const { data: stream, response } = await gateway.client.chat.completions
      .create({ ...chat("long"), max_tokens: 1500, stream: true })
      .withResponse();
    const name = response.headers.get("x-guidevane-engine")!;
    const other = name === "one" ? "two" : "one";
    let tokens = 0;
    const read = (async () => {
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) tokens++;
    })();

    await drain(name, true);
    const drainedMs = performance.now();
    const askedMs = await answeredBy(other);
    expect(askedMs - drainedMs).toBeLessThan(1000);
    await read;
    expect(tokens).toBe(1500);

    await drain(name, false);
    await answeredBy("one,two");
  });

  it("is remembered by a control plane that is started again", async () => {
    await drain("one", true);
    await answeredBy("two");
    const second = await whole.control();
    await eventually(async () => (await engineOf(second.url, "one")).health === "draining");
    expect((await engineOf(second.url, "two")).health).toBe("ready");
  });

  async function drain(engine: string, on: boolean): Promise<void> {
    const answer = await fetch(`${control}/v1/engines/${engine}/drain`, {
      method: "POST",
      // What `curl -d` sends.
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: JSON.stringify({ on }),
    });
    expect(answer.ok).toBe(true);
    await answer.text();
  }
});

describe("an engine that comes back on its address", () => {
  it("has traffic again within five seconds", async () => {
    const { port } = engines.one;
    await engines.one.kill();
    await answeredBy("two");
    await whole.engine({ port });
    const backMs = performance.now();
    const askedMs = await answeredBy("one,two");
    expect(askedMs - backMs).toBeLessThan(5000);
  });
});

/**
 * Waits until requests are answered by just these engines; when the first such requests were sent. Not often: what is
 * asked is demand, and more than one engine holds would rightly be shed.
 */
async function answeredBy(names: string): Promise<number> {
  let askedMs = 0;
  await eventually(
    async () => {
      askedMs = performance.now();
      return (await enginesAnswering(gateway, KEYS)).join() === names;
    },
    15_000,
    ASK_EVERY_MS,
  );
  return askedMs;
}

const KEYS = 12;
const ASK_EVERY_MS = 250;

/** Sends so many requests of different keys, all of which must be answered; the engines that did, in order of name. */
async function enginesAnswering(to: Gateway, count: number): Promise<(string | null)[]> {
  const answers = await Promise.all(Array.from({ length: count }, (_, at) => to.post(chat(`key ${at}`))));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  return [...new Set(answers.map(({ headers }) => headers.get("x-guidevane-engine")))].sort();
}

interface EngineAnswer {
  readonly id: string;
  readonly health: string;
  readonly signals: Readonly<Record<string, { value: number | null; state: string; ageMs: number | null }>>;
}

async function engineOf(url: string, id: string): Promise<EngineAnswer> {
  const answers = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
  return answers.find((each) => each.id === id)!;
}

async function signalsOf(url: string, id: string): Promise<EngineAnswer["signals"]> {
  return (await engineOf(url, id)).signals;
}
