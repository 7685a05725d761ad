import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { beforePair } from "./testing/pair.ts";
import { headerIn, type RawAnswer, type RawClient } from "./testing/raw-client.ts";
import { type EngineRequestSeen, jsonAnswer, ScriptedEngine } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};
const busy =
  (headers = "") =>
  ({ socket }: EngineRequestSeen): void => {
    socket.write(jsonAnswer('{"busy":1}', 503, headers));
  };

/** Home is always busy, the other engine is as told. */
async function homeBusy(headers: string, retry: string, other = good) {
  const clock = new ManualClock();
  const [a, b] = [await setup.engine(busy(headers)), await setup.engine(other)];
  const gateway = await beforePair(setup, [a, b], `gateway: { retry: { ${retry} } }`, { clock });
  return { clock, a, b, gateway, client: await setup.client(gateway) };
}

async function ask(client: RawClient, headers: Readonly<Record<string, string>> = {}): Promise<RawAnswer> {
  client.post(CHAT, PLAIN_BODY, headers);
  return client.answer();
}

const retries = (gateway: Gateway, result: string): Promise<number> =>
  metric(gateway, `guidevane_retries_total{result="${result}"}`);

describe("a retry takes from its model's budget", () => {
  const LITTLE = "maxRatio: 0, floorPer10s: 0, startTokens: 1";

  it("and without a token the client gets the engine's own answer, at once and as it was", async () => {
    const { clock, a, b, gateway, client } = await homeBusy("x-why: me\r\nretry-after: 1\r\n", LITTLE);
    expect((await ask(client)).status).toBe(200);
    clock.advance(1100);
    const got = await ask(client);
    expect([got.status, got.body.toString()]).toEqual([503, '{"busy":1}']);
    expect([headerIn(got, "x-why"), headerIn(got, "retry-after")]).toEqual(["me", "1"]);
    expect([a.requests.length, b.requests.length]).toEqual([2, 1]);
    expect([await retries(gateway, "spent"), await retries(gateway, "refused")]).toEqual([1, 1]);
    expect(await metric(gateway, "guidevane_retry_budget_tokens")).toBe(0);
  });

  it("gains with time", async () => {
    const { clock, client } = await homeBusy("", "maxRatio: 0, floorPer10s: 10, startTokens: 0");
    expect((await ask(client)).status).toBe(503);
    clock.advance(1100);
    expect((await ask(client)).status).toBe(200);
  });

  it("earns by first attempts, not by what a client tries again", async () => {
    const { clock, client } = await homeBusy("", "maxRatio: 1, floorPer10s: 0, startTokens: 0");
    expect((await ask(client, { "x-stainless-retry-count": "1" })).status).toBe(503);
    clock.advance(1100);
    expect((await ask(client, { "x-stainless-retry-count": "0" })).status).toBe(200);
  });

  it("and gives the token back where there is nobody to ask", async () => {
    const clock = new ManualClock();
    const engine = await setup.engine(busy("retry-after: 5\r\n"));
    const gateway = await setup.before({ a: engine }, `gateway: { retry: { ${LITTLE} } }`, { clock });
    const client = await setup.client(gateway);
    expect((await ask(client)).status).toBe(503);
    clock.advance(300);
    expect(await metric(gateway, "guidevane_retry_budget_tokens")).toBe(1);
    expect([await retries(gateway, "spent"), await retries(gateway, "refused")]).toEqual([0, 0]);
  });

  it("but not where an engine can't be reached: none has worked for the request yet", async () => {
    const dead = await ScriptedEngine.start();
    const alive = await setup.engine(good);
    const gateway = await beforePair(
      setup,
      [dead, alive],
      "gateway: { retry: { maxRatio: 0, floorPer10s: 0, startTokens: 0 } }",
      {
        probe: () => Promise.resolve({ kind: "connected" }),
      },
    );
    await dead.kill();
    const got = await ask(await setup.client(gateway));
    expect(got.status).toBe(200);
    expect(alive.requests.length).toBe(1);
  });
});

describe("an engine that says when it may be asked again", () => {
  it.each([
    ["in seconds", "retry-after: 7\r\n", "", 7000],
    ["by a date", "retry-after: Tue, 14 Nov 2023 22:13:24 GMT\r\n", "", 4000],
    ["in milliseconds", "retry-after-ms: 2500\r\nretry-after: 3\r\n", "", 2500],
    ["for longer than the cap", "retry-after: 7\r\n", "retryAfterCapMs: 3000", 3000],
    ["not at all", "", "", 1000],
    ["in no way that can be read", "retry-after: soon\r\n", "", 1000],
  ])("is left alone for so long while another can serve: %s", async (_what, headers, retry, coolMs) => {
    const { clock, a, b, client } = await homeBusy(headers, retry);
    expect(headerIn(await ask(client), "x-guidevane-reason")).toBe("retry");
    clock.advance(coolMs - 1);
    const cooled = await ask(client);
    expect([cooled.status, headerIn(cooled, "x-guidevane-engine")]).toEqual([200, "b"]);
    expect([a.requests.length, b.requests.length]).toEqual([1, 2]);
    clock.advance(2);
    await ask(client);
    expect(a.requests.length).toBe(2);
  });

  it("is asked when all others cool too, but no retry goes to one that cools for a second or more", async () => {
    const { clock, a, b, client } = await homeBusy("retry-after: 7\r\n", "", busy("retry-after: 7\r\n"));
    const counts = (): number[] => [a.requests.length, b.requests.length];
    expect((await ask(client)).status).toBe(503);
    expect(counts()).toEqual([1, 1]);
    expect((await ask(client)).status).toBe(503);
    expect(counts()).toEqual([2, 1]);
    clock.advance(6100);
    expect((await ask(client)).status).toBe(503);
    expect(counts()).toEqual([3, 2]);
  });
});

describe("the only engine there is", () => {
  async function alone(first: string) {
    const clock = new ManualClock();
    let asked = 0;
    const engine = await setup.engine((request) => {
      asked += 1;
      if (asked === 1) request.socket.write(jsonAnswer('{"busy":1}', 429, first));
      else good(request);
    });
    const gateway = await setup.before({ a: engine }, "", { clock, random: () => 0.5 });
    return { clock, engine, gateway, client: await setup.client(gateway) };
  }

  it("is asked again after a pause", async () => {
    const { clock, engine, gateway, client } = await alone("");
    const again = engine.next().then(() => engine.next());
    client.post(CHAT, PLAIN_BODY);
    await eventually(
      async () => (await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="saturated"}')) === 1,
    );
    clock.advance(149);
    expect(engine.requests.length).toBe(1);
    clock.advance(1);
    await again;
    const got = await client.answer();
    expect([got.status, headerIn(got, "x-guidevane-reason")]).toEqual([200, "retry"]);
    expect(await retries(gateway, "spent")).toBe(1);
  });

  it("is not asked again where it wants a second or more", async () => {
    const { engine, client } = await alone("retry-after: 1\r\n");
    const got = await ask(client);
    expect([got.status, headerIn(got, "retry-after"), engine.requests.length]).toEqual([429, "1", 1]);
  });

  it("B069: is not asked again for a client that leaves during the pause", async () => {
    const { clock, engine, gateway, client } = await alone("");
    client.post(CHAT, PLAIN_BODY);
    await eventually(
      async () => (await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="saturated"}')) === 1,
    );
    client.close();
    await eventually(
      async () => (await metric(gateway, 'guidevane_requests_total{class="m",outcome="cancelled"}')) === 1,
    );
    clock.advance(1000);
    expect(engine.requests.length).toBe(1);
    expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(0);
    expect(await retries(gateway, "spent")).toBe(0);
  });
});
