import type { EngineKind, Profile } from "@guidevane/core";
import { dialectOf, dialectOfPage, parsePrometheusText, wantedByAny } from "@guidevane/signals";
import { afterEach, describe, expect, it } from "vitest";
import {
  chat,
  get,
  killStarted,
  openStream,
  post,
  quick,
  slow,
  start,
  untilCounts,
} from "../emulated-engine.fixture.ts";
import { EMULATED_KINDS, type EmulatedKindName } from "./index.ts";

afterEach(killStarted);

const KINDS = Object.keys(EMULATED_KINDS) as EmulatedKindName[];
/** Decodes four requests at most, and for an hour: whoever comes fifth waits. */
const narrow: Profile = {
  ...quick,
  capacityWps: 0.001,
  reference: { promptTokens: 4, outputTokens: 2 },
  ttftMs: [[0, 0.01]],
  tbotMs: [[0, 1000]],
};

describe.each(KINDS)("an emulated %s", (kind) => {
  const dialect = dialectOf(kind)!;

  it("has the figures of its model on the page that its dialect reads", async () => {
    const engine = await start({ kind, profile: narrow, kvTokens: 65_536 });
    const streams = Array.from({ length: 6 }, () => post(engine, "/v1/chat/completions", { ...chat, max_tokens: 900 }));
    for (const stream of streams) stream.catch((error: Error) => expect(error.message).toBe("fetch failed"));
    await untilCounts(engine, ({ inFlight }) => inFlight === 6);
    const look = async () => {
      const { text } = await get(engine, EMULATED_KINDS[kind].metricsPath);
      return dialect.read(parsePrometheusText(text, dialect.wants)).signals;
    };
    let signals = await look();
    // Until the fourth prompt is read.
    while (signals.running !== 4 || signals.waiting !== 2) signals = await look();
    if (dialect.aside !== undefined) {
      // The page of slots is asked for later, and may be a prompt behind.
      let used: unknown;
      while (used !== 4 / engine.model.slots) used = dialect.aside.read((await get(engine, dialect.aside.path)).text);
    } else if (signals.kvUsage !== "not-offered") {
      expect(signals.kvUsage).toBeGreaterThan(0);
      expect(signals.kvUsage).toBeCloseTo(engine.model.kvUsage, 4);
    }
  });

  it("counts what its dialect reads", async () => {
    const engine = await start({ kind });
    await post(engine, "/v1/chat/completions", { ...chat, max_tokens: 5 });
    await post(engine, "/v1/completions", { model: "tiny", prompt: "Hi", max_tokens: 2, stream: true });
    await untilCounts(engine, ({ finished }) => finished === 2);
    const { text } = await get(engine, EMULATED_KINDS[kind].metricsPath);
    const { counters } = dialect.read(parsePrometheusText(text, dialect.wants));
    const total = (series: ReadonlyMap<string, number>) => [...series.values()].reduce((sum, each) => sum + each, 0);
    // What a kind does not count is no series, not a zero.
    const expected = { promptTokens: 4, generationTokens: 7, successes: 2 };
    for (const [name, count] of Object.entries(expected)) {
      const series = counters[name as keyof typeof expected];
      if (series.size > 0) expect(total(series)).toBe(count);
      else expect(UNCOUNTED[kind]).toContain(name);
    }
  });

  it("is told from the others by its page, whatever kind the fleet file says", async () => {
    const engine = await start({ kind });
    const { text } = await get(engine, EMULATED_KINDS[kind].metricsPath);
    const page = parsePrometheusText(text, wantedByAny);
    for (const said of [...KINDS, "openai"] as EngineKind[]) expect(dialectOfPage(page, said)?.kind).toBe(kind);
  });

  it("is well at its health path, and not without a replica", async () => {
    const engine = await start({ kind });
    const { healthPath, healthy } = EMULATED_KINDS[kind];
    expect(await get(engine, healthPath)).toEqual({ status: 200, text: healthy });
    engine.control({ readyReplicas: 0 });
    expect((await get(engine, healthPath)).status).toBe(503);
  });

  it("refuses in its own form", async () => {
    const engine = await start({ kind });
    const noMessages = await post(engine, "/v1/chat/completions", { model: "tiny" });
    expect([noMessages.status, JSON.parse(noMessages.text)]).toMatchObject(REFUSALS[kind].noMessages);
    const noPath = await post(engine, "/v1/nothing", {});
    expect([noPath.status, noPath.text]).toEqual([404, EMULATED_KINDS[kind].notFound]);
    const otherModel = await post(engine, "/v1/chat/completions", { ...chat, model: "nope" });
    expect(otherModel.status).toBe(REFUSALS[kind].otherModel);
    engine.control({ answerStatus: 503 });
    const busy = await post(engine, "/v1/chat/completions", chat);
    expect([busy.status, JSON.parse(busy.text)]).toMatchObject(REFUSALS[kind].busy);
  });
});

describe("the head of a stream", () => {
  it.each(KINDS.filter((kind) => EMULATED_KINDS[kind].headAtOnce))("is there at once at %s", async (kind) => {
    const { response, sent } = await openStream(await start({ kind, profile: slow }));
    expect(response.statusCode).toBe(200);
    sent.destroy();
  });

  it("waits for a slot at llama.cpp", async () => {
    const engine = await start({ kind: "llamacpp", profile: slow });
    let headed = false;
    const asked = fetch(`${engine.url}/v1/completions`, {
      method: "POST",
      body: JSON.stringify({ prompt: "Hi", stream: true }),
    }).then(
      () => {
        headed = true;
      },
      (error: Error) => expect(error.message).toBe("fetch failed"),
    );
    await untilCounts(engine, ({ inFlight }) => inFlight === 1);
    for (let turn = 0; turn < 5; turn++) await get(engine, "/health");
    expect(headed).toBe(false);
    await engine.kill();
    await asked;
  });
});

const UNCOUNTED: Readonly<Record<EmulatedKindName, readonly string[]>> = {
  vllm: [],
  sglang: [],
  tgi: [],
  trtllm: ["promptTokens", "generationTokens"],
  triton: ["promptTokens", "generationTokens"],
  llamacpp: ["successes"],
};

const message = "Field required: messages";
const unavailable = "The engine cannot accept new requests.";
interface Refusals {
  readonly noMessages: object;
  /** Status: 200 where the name is not looked at. */
  readonly otherModel: number;
  readonly busy: object;
}

/** What a body without messages, another model, and a request to an engine that has no room, are answered with. */
const REFUSALS: Readonly<Record<EmulatedKindName, Refusals>> = {
  vllm: {
    noMessages: [400, { error: { message, code: 400 } }],
    otherModel: 404,
    busy: [503, { error: { message: unavailable } }],
  },
  sglang: {
    noMessages: [400, { object: "error", message, type: "Bad Request", param: null, code: 400 }],
    otherModel: 200,
    busy: [503, { object: "error", type: "503", code: 503 }],
  },
  tgi: {
    noMessages: [422, { error: message, error_type: "validation" }],
    otherModel: 200,
    busy: [503, { error_type: "overloaded" }],
  },
  trtllm: {
    noMessages: [400, { object: "error", message, type: "BadRequestError", param: null, code: 400 }],
    otherModel: 200,
    busy: [503, { object: "error", code: 503 }],
  },
  triton: {
    noMessages: [422, { detail: [{ loc: ["body", "messages"], msg: message }] }],
    otherModel: 400,
    busy: [503, { detail: unavailable }],
  },
  llamacpp: {
    noMessages: [400, { error: { message, type: "invalid_request_error", code: 400 } }],
    otherModel: 200,
    busy: [503, { error: { type: "unavailable_error", code: 503 } }],
  },
};
