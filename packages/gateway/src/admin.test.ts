import { GuidevaneError } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { fleetOf, startTestGateway } from "./testing/fleet.ts";
import { RawClient } from "./testing/raw-client.ts";
import { jsonAnswer } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

const setup = createSetup(afterEach);

describe("the admin port", () => {
  it("says alive and ready, shows engines by their ids, and knows nothing else", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
    const fleet = await fleetOf({ a: engine.url, b: "http://127.0.0.1:1" });
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 3 }, { a: 0.75, b: 0.25 })));
    const get = (path: string, method = "GET") => fetch(`${gateway.adminUrl}${path}`, { method });
    expect((await get("/healthz")).status).toBe(200);
    expect((await get("/readyz")).status).toBe(200);
    expect((await get("/elsewhere")).status).toBe(404);
    expect((await get("/v1/engines", "POST")).status).toBe(405);
    const engines = async () => (await (await get("/v1/engines")).json()) as Record<string, unknown>[];
    await eventually(async () => (await engines()).every(({ health }) => health !== "unknown"));
    const missing = { value: null, state: "missing", ageMs: null };
    const rest = {
      healthAgeMs: expect.any(Number),
      inFlight: 0,
      penalty: { factor: 1, evidence: null },
      signals: { running: missing, waiting: missing, kvUsage: missing, readyReplicas: missing },
    };
    expect(await engines()).toEqual([
      { id: "a", health: "ready", healthReason: "probe answers", share: { m: 0.75 }, ...rest },
      { id: "b", health: "dead", healthReason: "connection refused", share: { m: 0.25 }, ...rest },
    ]);
  });

  it("B164: counts what went through, with names of the fleet alone", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    await client.answer();
    const series = async () => (await (await fetch(`${gateway.adminUrl}/metrics`)).text()).split("\n").length;
    client.post(CHAT, '{"model":"made-up","messages":[]}');
    await client.answer();
    const before = await series();
    for (let i = 0; i < 50; i++) {
      client.post(`${CHAT}?q=${i}`, `{"model":"made-up-${i}","messages":[]}`);
      await client.answer();
    }
    expect(await series()).toBe(before);
    expect(await metric(gateway, 'guidevane_requests_total{class="other",outcome="rejected"}')).toBe(51);
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="success"}')).toBe(1);
    expect(await metric(gateway, 'guidevane_placed_total{reason="bootstrap"}')).toBe(1);
    expect(await metric(gateway, "guidevane_route_seconds_count")).toBe(52);
    expect(await metric(gateway, 'guidevane_request_seconds_count{class="m"}')).toBe(1);
    expect([0, 1]).toContain(await metric(gateway, "guidevane_native"));
  });

  it("wants its token where it has one, but for the probes of an orchestrator", async () => {
    const engine = await setup.engine();
    const gateway = await setup.before({ a: engine }, "", { adminToken: "sesame" });
    const status = async (authorization?: string, path = "/metrics") =>
      (await fetch(`${gateway.adminUrl}${path}`, { headers: authorization === undefined ? {} : { authorization } }))
        .status;
    expect(await status("Bearer sesame")).toBe(200);
    expect(await status("bearer sesame ")).toBe(200);
    for (const wrong of [undefined, "Bearer", "Bearer Sesame", "Basic sesame", "Bearer sesame1"])
      expect(await status(wrong)).toBe(401);
    expect([await status(undefined, "/healthz"), await status(undefined, "/readyz")]).toEqual([200, 200]);
  });

  it("is not opened beyond loopback without a token", async () => {
    const fleet = await fleetOf({ a: "http://127.0.0.1:1" });
    const opening = startTestGateway(fleet, { admin: "0.0.0.0:0" });
    await expect(opening).rejects.toSatisfy((error) => GuidevaneError.is(error) && error.code === "bad_usage");
  });

  it("does not answer a web page whose name was made to lead to this machine", async () => {
    const gateway = await setup.before({ a: "http://127.0.0.1:1" });
    const client = await RawClient.connect(gateway.adminUrl);
    setup.cleanups.push(() => client.close());
    client.send("GET /v1/engines HTTP/1.1\r\nhost: evil.example\r\n\r\n");
    expect((await client.answer()).status).toBe(403);
  });
});

describe("starting", () => {
  it.each([
    ["listen", "nowhere"],
    ["listen", "127.0.0.1:99999"],
    ["admin", "127.0.0.1"],
  ] as const)("names %s where it is %s", async (option, value) => {
    const opening = startTestGateway(await fleetOf({ a: "http://127.0.0.1:1" }), { [option]: value });
    await expect(opening).rejects.toThrow(`--${option}: needs HOST:PORT (got "${value}")`);
  });

  it("names a cluster that the fleet does not have", async () => {
    const opening = startTestGateway(await fleetOf({ a: "http://127.0.0.1:1" }), { cluster: "west" });
    await expect(opening).rejects.toSatisfy((error) => GuidevaneError.is(error) && error.code === "bad_fleet");
  });

  it("leaves nothing behind where its port is taken", async () => {
    const first = await setup.before({ a: "http://127.0.0.1:1" });
    const { host } = new URL(first.url);
    const opening = startTestGateway(await fleetOf({ a: "http://127.0.0.1:1" }), { listen: host });
    await expect(opening).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});
