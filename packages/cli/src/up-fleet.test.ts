import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { loadFleet, profileOf, rttMsOf, valueAt } from "@guidevane/core";
import { nearestOnly } from "@guidevane/optimizer";
import { describe, expect, it } from "vitest";
import { planInputs } from "./plan-inputs.ts";
import { readFleet } from "./read-fleet.ts";
import { DEFAULT_FLEET, rewriteFleet, scaleFactor } from "./up-fleet.ts";
import { planPorts, takenPorts } from "./up-ports.ts";

const fleet = await readFleet(DEFAULT_FLEET);

describe("the three-cluster example", () => {
  it("has the latency 200/220/300/500/900 ms at 0/70/85/95/100 % of the load", () => {
    const profile = profileOf(fleet, fleet.engines.get("engine-a")!);
    const latency = [0, 0.7, 0.85, 0.95, 1].map(
      (rho) => valueAt(profile.ttftMs, rho) + 16 * valueAt(profile.tbotMs, rho),
    );
    expect(latency).toEqual([200, 220, 300, 500, 900]);
    expect(profile.reference).toEqual({ promptTokens: 64, outputTokens: 16 });
  });

  it("has the round trips 2 at home, 80, 60 and 140 ms", () => {
    const rtt = (cluster: string, engine: string) =>
      rttMsOf(fleet, fleet.clusters.get(cluster)!, fleet.engines.get(engine)!);
    expect([rtt("a", "engine-a"), rtt("a", "engine-b"), rtt("b", "engine-c"), rtt("c", "engine-a")]).toEqual([
      2, 80, 60, 140,
    ]);
  });

  it("has no steady mean when each cluster keeps to its nearest engine: engine-b would stand at 120 %", () => {
    expect(nearestOnly(planInputs(fleet))).toEqual({
      kind: "unbounded",
      over: [{ engine: "engine-b", loadWps: 120, capacityWps: 100 }],
    });
  });
});

describe("a fleet file rewritten for this machine", () => {
  it("says the same, on the run's ports, with capacities and demand scaled", async () => {
    const ports = planPorts(fleet, 9000);
    const text = rewriteFleet(await readFile(DEFAULT_FLEET, "utf8"), DEFAULT_FLEET, fleet, ports, 0.25);
    const rewritten = await loadFleet(text, "run", (path) => readFile(path, "utf8"));
    expect([...rewritten.engines.values()].map((each) => [each.id, each.url, each.capacityWps])).toEqual([
      ["engine-a", "http://127.0.0.1:9200", 25],
      ["engine-b", "http://127.0.0.1:9201", 25],
      ["engine-c", "http://127.0.0.1:9202", 20],
    ]);
    expect([...rewritten.demandRps].map(([cluster, byClass]) => [cluster, byClass.get("chat")])).toEqual([
      ["a", 22.5],
      ["b", 30],
      ["c", 10],
    ]);
    const others = { engines: null, demandRps: null, gateway: null };
    expect({ ...rewritten, ...others }).toEqual({ ...fleet, ...others });
    expect(rewritten.gateway).toEqual({ ...fleet.gateway, placement: "home" });
  });

  it("gives an engine that needs a key or has its health elsewhere to an emulator that has neither", async () => {
    const text = `
clusters: { a: { region: r } }
engines:
  e: { url: "https://engine.example/prefix", region: r, models: [m], profile: p, auth: { keyEnv: KEY }, health: { path: /up, port: 99 }, metrics: { port: 98 }, tls: { caFile: ca.pem } }
profiles: { p: { file: ${resolve(dirname(DEFAULT_FLEET), "profile.yaml")} } }
gateway: { clientKeys: { file: keys } }
`;
    const asked = await loadFleet(text, "asked", (path) => readFile(path, "utf8"));
    const rewritten = await loadFleet(
      rewriteFleet(text, "/somewhere/asked.yaml", asked, planPorts(asked, 9000), 1),
      "run",
      (path) => readFile(path, "utf8"),
    );
    const engine = rewritten.engines.get("e")!;
    expect(engine).toMatchObject({ url: "http://127.0.0.1:9200", auth: {}, capacityWps: 100 });
    expect([engine.health.port, engine.metrics.port]).toEqual([null, null]);
    expect(engine.tls).toEqual({});
    expect(rewritten.gateway.clientKeys).toBeUndefined();
  });

  it("is scaled by what the cores carry, and never up", () => {
    expect(scaleFactor(fleet, 1000)).toBe(1);
    const [two, four] = [scaleFactor(fleet, 2), scaleFactor(fleet, 4)];
    expect(two).toBeGreaterThan(0.1);
    expect(two).toBeLessThan(1);
    expect(four / two).toBeCloseTo(2, 1);
  });
});

describe("the ports of up", () => {
  it("count gateways from the first, control at +90, their admins from +100, engines from +200", () => {
    const ports = planPorts(fleet, 8080);
    expect([...ports.gateways]).toEqual([
      ["a", 8080],
      ["b", 8081],
      ["c", 8082],
    ]);
    expect(ports.control).toBe(8170);
    expect([...ports.gatewayAdmins.values()]).toEqual([8180, 8181, 8182]);
    expect([...ports.engines.values()]).toEqual([8280, 8281, 8282]);
  });

  it.each([0, 65_400])("can't start at %i", (port) => {
    expect(() => planPorts(fleet, port)).toThrow("--port");
  });

  it("are taken where something listens", async () => {
    const { createServer } = await import("node:net");
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    });
    const none = new Map<string, number>();
    expect(await takenPorts({ gateways: none, gatewayAdmins: none, engines: none, control: port })).toEqual([port]);
    await new Promise((resolve) => server.close(resolve));
    expect(await takenPorts({ gateways: none, gatewayAdmins: none, engines: none, control: port })).toEqual([]);
  });
});
