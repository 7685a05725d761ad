import { describe, expect, it } from "vitest";
import { fleetOf, inputsOf, threeClusters } from "./fleet.fixture.ts";
import { meanLatency, nearestOnly } from "./nearest.ts";
import { plan } from "./plan.ts";

describe("nearest-only", () => {
  it("names the engine that it drowns, and by how much", async () => {
    expect(nearestOnly(inputsOf(await threeClusters()))).toEqual({
      kind: "unbounded",
      over: [{ engine: "engine-b", loadWps: 120, capacityWps: 100 }],
    });
  });

  it("costs the mean of what each cluster sees where all fit", async () => {
    const inputs = inputsOf(await threeClusters(), { demandRps: { a: { chat: 70 }, b: { chat: 85 }, c: { chat: 0 } } });
    const result = nearestOnly(inputs);
    if (result.kind !== "bounded") throw new Error(result.kind);
    // 200 ms unloaded, 220 at 70 %, 300 at 85 %, and 2 ms of network; c has its floor of a thousandth.
    expect(result.clusters.get("a")).toBeCloseTo(222, 9);
    expect(result.clusters.get("b")).toBeCloseTo(302, 9);
    expect(result.clusters.get("c")).toBeCloseTo(202, 2);
    expect(result.meanMs).toBeCloseTo((70 * 222 + 85 * 302) / 155, 2);
  });

  it("takes the engine that comes first by id among equally near ones", async () => {
    const fleet = await fleetOf(`
clusters: { a: { region: r } }
engines:
  z: { url: "http://z.example", region: r, models: [m], capacityWps: 1 }
  b: { url: "http://b.example", region: r, models: [m], capacityWps: 1 }
classes: { chat: { model: m, work: 1 } }
demandRps: { a: { chat: 3 } }
`);
    expect(nearestOnly(inputsOf(fleet))).toEqual({
      kind: "unbounded",
      over: [{ engine: "b", loadWps: 3, capacityWps: 1 }],
    });
  });

  it("is unbounded where the nearest engine is out", async () => {
    const inputs = inputsOf(await threeClusters(), {
      demandRps: { b: { chat: 50 } },
      engines: { "engine-b": { adminState: "out" } },
    });
    expect(nearestOnly(inputs)).toMatchObject({ kind: "unbounded", over: [{ engine: "engine-b", capacityWps: 0 }] });
  });

  it("is nothing where there is nothing to route", async () => {
    const fleet = await fleetOf("clusters: { a: { region: r } }");
    expect(nearestOnly(inputsOf(fleet))).toEqual({ kind: "none", message: "no engine may serve any class" });
  });
});

describe("meanLatency", () => {
  it("is the optimum's 394.92 ms in the three-cluster example, cluster by cluster", async () => {
    const { publication } = plan(inputsOf(await threeClusters()), null, null, { deadlineMs: null });
    const { meanMs, clusters } = meanLatency(publication!);
    expect(meanMs).toBeCloseTo(394.92, 2);
    expect(clusters.get("a")).toBeCloseTo(402, 6);
    const mean = (90 * clusters.get("a")! + 120 * clusters.get("b")! + 40 * clusters.get("c")!) / 250;
    expect(mean).toBeCloseTo(meanMs!, 9);
  });

  it("is null where nothing is served", async () => {
    const { publication } = plan(inputsOf(await fleetOf("clusters: { a: { region: r } }")), null, null, {
      deadlineMs: null,
    });
    expect(meanLatency(publication!).meanMs).toBeNull();
  });
});
