import { ManualClock } from "@guidevane/core";
import { bootstrapSnapshot } from "@guidevane/selector";
import { afterEach, describe, expect, it } from "vitest";
import { expectedTtftMs, readDeadline } from "./deadline.ts";
import { fleetOf } from "./testing/fleet.ts";
import { beforePair } from "./testing/pair.ts";
import { headerIn } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

async function start() {
  const clock = new ManualClock();
  const [a, b] = [await setup.engine(), await setup.engine(({ socket }) => socket.write(jsonAnswer('{"by":"b"}')))];
  const gateway = await beforePair(setup, [a, b], "", { clock });
  return { clock, a, b, gateway, client: await setup.client(gateway) };
}

describe("a request's deadline", () => {
  it("is the gateway's own header, else the library's seconds", () => {
    expect(readDeadline({ "x-guidevane-deadline-ms": "1500", "x-stainless-timeout": "600" })).toBe(1500);
    expect(readDeadline({ "x-stainless-timeout": "600" })).toBe(600_000);
    expect(readDeadline({ "x-stainless-timeout": "0.25" })).toBe(250);
    for (const timeout of ["", "NaN", "-1", "0", "Infinity", "soon"])
      expect(readDeadline({ "x-stainless-timeout": timeout })).toBeNull();
    expect(readDeadline({})).toBeNull();
  });

  it.each(["soon", "0", "-5", "1e3", "99999999999", ""])("is refused where it is %j", async (deadline) => {
    const { a, client } = await start();
    client.post(CHAT, PLAIN_BODY, { "x-guidevane-deadline-ms": deadline });
    const got = await client.answer();
    expect([got.status, JSON.parse(got.body.toString()).error]).toEqual([
      400,
      expect.objectContaining({ code: "invalid_header", param: "x-guidevane-deadline-ms" }),
    ]);
    expect(a.requests.length).toBe(0);
  });

  it("B070: begins no attempt that can't have its first token by then", async () => {
    const { a, gateway, client } = await start();
    // The generic curve's first token takes 60 ms at an idle engine.
    client.post(CHAT, PLAIN_BODY, { "x-guidevane-deadline-ms": "59" });
    const got = await client.answer();
    expect([got.status, JSON.parse(got.body.toString()).error.code]).toEqual([504, "engine_timeout"]);
    expect(a.requests.length).toBe(0);
    expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="rejected"}')).toBe(1);
  });

  it.each([
    ["x-guidevane-deadline-ms", "3000"],
    ["x-stainless-timeout", "3"],
  ])("ends a running attempt, and that is not the engine's fault: %s", async (name, value) => {
    const { clock, a, b, gateway, client } = await start();
    client.post(CHAT, PLAIN_BODY, { [name]: value });
    const { closed } = await a.next();
    clock.advance(2999);
    expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(1);
    clock.advance(1);
    const got = await client.answer();
    expect([got.status, JSON.parse(got.body.toString()).error.code]).toEqual([504, "engine_timeout"]);
    await closed;
    expect(b.requests.length).toBe(0);
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="cancelled"}')).toBe(1);
  });

  it.each([
    [CHAT, STREAM_BODY, /^data: 1\n\ndata: \{"error":\{.*"code":"engine_timeout"\}\}\n\n$/],
    [
      "/v1/messages",
      STREAM_BODY.replace("{", '{"max_tokens":9,'),
      /^data: 1\n\nevent: error\ndata: \{"type":"error",.*\}\n\n$/,
    ],
    [
      "/v1/responses",
      '{"model":"m","stream":true,"input":"hi"}',
      /^data: 1\n\nevent: error\ndata: \{"type":"error",.*\}\n\n$/,
    ],
  ])("ends a stream of %s in its own words", async (path, body, expected) => {
    const { clock, a, client } = await start();
    client.post(path, body, { "x-guidevane-deadline-ms": "3000" });
    const { socket, closed } = await a.next();
    socket.write(`${STREAM_HEAD}${chunked("data: 1\n\n")}`);
    await client.until("data: 1");
    clock.advance(3000);
    expect((await client.answer()).body.toString()).toMatch(expected);
    await closed;
  });

  it("B070: is held to by retries: the last answer goes to the client where too little is left for another", async () => {
    const { clock, a, b, client } = await start();
    for (const [waitMs, status] of [
      [2950, 503],
      [2900, 200],
    ] as const) {
      client.post(CHAT, PLAIN_BODY, { "x-guidevane-deadline-ms": "3000" });
      const { socket } = await a.next();
      clock.advance(waitMs);
      socket.write(jsonAnswer('{"busy":1}', 503));
      const got = await client.answer();
      expect([got.status, headerIn(got, "x-guidevane-engine")]).toEqual([status, status === 503 ? "a" : "b"]);
      // It asked to be left alone for a second.
      clock.advance(1100);
    }
    expect(b.requests.length).toBe(1);
  });
});

describe("the expected time to a first token", () => {
  it("is the profile's at the planned load, with the way there and the class's own prompt", async () => {
    const fleet = await fleetOf(
      { a: "http://x:1" },
      "classes: { m: { model: m, promptTokens: 1512, outputTokens: 10 } }",
    );
    const snapshot = bootstrapSnapshot(fleet, "east");
    const engine = snapshot.engines.a!;
    // 60 ms, and 0.1 ms for each of a thousand tokens more than the reference's.
    expect(expectedTtftMs(snapshot, "m", "a")).toBeCloseTo(160, 6);
    const loaded = { ...snapshot, engines: { a: { ...engine, rttMs: 7, loadWps: 8, capacityWps: 10 } } };
    expect(expectedTtftMs(loaded, "m", "a")).toBeCloseTo(287, 6);
    const { latency: _, ...unknown } = engine;
    expect(expectedTtftMs({ ...snapshot, engines: { a: unknown } }, "m", "a")).toBe(snapshot.cells[0]!.expectedMs[0]);
    expect(expectedTtftMs(snapshot, "m", "gone")).toBe(0);
  });
});
