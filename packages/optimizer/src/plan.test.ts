import {
  type ClusterSnapshot,
  checkClusterSnapshot,
  decodeRing,
  type Fleet,
  type Publication,
  parseClusterSnapshot,
  type SnapshotCell,
  type StoredPublication,
} from "@guidevane/core";
import { createCurveEvaluator } from "@guidevane/native";
import { describe, expect, it } from "vitest";
import { EXAMPLE_PROFILE, fleetOf, inputsOf, threeClusters } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import type { PlanInputs } from "./plan-types.ts";
import { verifyCertificate } from "./verify.ts";

const NO_LIMIT = { deadlineMs: null };
/** Closed forms know no extra half millisecond. */
const CLOSED = { evenLoadMs: 0 };

function planned(inputs: PlanInputs, previous: StoredPublication | null = null): Publication {
  const { status, message, publication } = plan(inputs, previous, null, NO_LIMIT, CLOSED);
  if (publication === null) throw new Error(`${status}: ${message}`);
  expect(verifyCertificate(publication)).toEqual([]);
  for (const snapshot of publication.clusters.values()) expect(checkClusterSnapshot(snapshot)).toEqual([]);
  return publication;
}

function stored(publication: Publication): StoredPublication {
  return { ...publication, version: 1, epoch: 1 };
}

function cellOf({ clusters }: Publication, cluster: string, requestClass = "chat"): SnapshotCell {
  const cell = clusters.get(cluster)?.cells.find((each) => each.class === requestClass);
  if (cell === undefined) throw new Error(`no cell ${cluster} ${requestClass}`);
  return cell;
}

function sharesOf(cell: SnapshotCell): Record<string, number> {
  const owners = decodeRing(cell);
  return Object.fromEntries(
    cell.engines.map((id, index) => [id, owners.filter((owner) => owner === index).length / owners.length]),
  );
}

function loadOf(snapshot: ClusterSnapshot | undefined, id: string): number {
  return snapshot!.engines[id]!.loadWps;
}

describe("the three-cluster example, from fleet to rings", () => {
  it("sends a quarter of b to c, keeps a and c at home, and proves it", async () => {
    const publication = planned(inputsOf(await threeClusters()));
    const b = sharesOf(cellOf(publication, "b"));
    // A slot is 0.03 requests/s.
    expect(Math.abs(b["engine-c"]! * 120 - 30.4667)).toBeLessThan(0.03);
    expect(sharesOf(cellOf(publication, "a"))).toEqual({ "engine-a": 1 });
    expect(sharesOf(cellOf(publication, "c"))).toEqual({ "engine-c": 1 });
    const { certificate } = publication.clusters.get("a")!;
    expect(certificate.expectedLatencyMs).toBeCloseTo(394.92, 2);
    // All delay grows with work here, so the objective is the mean latency itself.
    expect(certificate.objectiveMs).toBeCloseTo(certificate.expectedLatencyMs, 6);
    expect(certificate.gap).toBeLessThan(1e-6);
    expect(certificate.gapMs).toBeCloseTo(certificate.objectiveMs - certificate.lowerBoundMs, 9);
    expect(certificate.churnFree.gapMs).toBe(certificate.gapMs);
  });

  it("explains b → c and b → b by addends that sum to b's price", async () => {
    const cell = cellOf(planned(inputsOf(await threeClusters())), "b");
    const byEngine = new Map(cell.engines.map((id, at) => [id, cell.addends[at]!]));
    for (const [id, [network, service, congestion]] of [
      ["engine-b", [2, 200, 190.67 + 1790.67]],
      ["engine-c", [60, 200, 161.67 + 1761.67]],
    ] as const) {
      const addends = byEngine.get(id)!;
      expect(addends[0]).toBe(network);
      expect(addends[1]).toBeCloseTo(service, 9);
      expect(Math.abs(addends[2] - congestion)).toBeLessThan(0.01);
      expect(addends.slice(3)).toEqual([0, 0]);
      expect(addends.reduce((sum, addend) => sum + addend, 0)).toBeCloseTo(cell.priceMs, 6);
    }
    expect(cell.priceMs).toBeCloseTo(2183.333, 2);
  });

  it("says what each engine's capacity is worth", async () => {
    const { engines } = planned(inputsOf(await threeClusters())).clusters.get("b")!;
    for (const [id, worthMs] of [
      ["engine-a", 1620],
      ["engine-b", 1603.24],
      ["engine-c", 1551.73],
    ] as const)
      expect(Math.abs(engines[id]!.worthMs - worthMs)).toBeLessThan(0.01);
  });

  it("keeps the unused engines as reserves, the cheapest first, with what they could take", async () => {
    const publication = planned(inputsOf(await threeClusters()));
    const { reserves, priceMs } = cellOf(publication, "c");
    expect(reserves.map(({ engine }) => engine)).toEqual(["engine-b", "engine-a"]);
    expect(reserves[0]!.reducedCostMs).toBeCloseTo(2 * (60 - 2), 0);
    expect(reserves[1]!.reducedCostMs).toBeGreaterThan(reserves[0]!.reducedCostMs);
    expect(priceMs).toBeGreaterThan(0);
    const load = loadOf(publication.clusters.get("c"), "engine-b");
    expect(reserves[0]!.spareWps).toBeCloseTo(100 - load, 9);
  });

  it("limits streams to 1.25 × what its part of full engines would hold at 0.95", async () => {
    const cell = cellOf(planned(inputsOf(await threeClusters())), "a");
    // Engine a is a's alone: 100 requests/s × (2 + 500) ms × 1.25.
    expect(cell.streamLimit).toBeCloseTo(1.25 * 100 * 0.502, 6);
  });

  it("moves no slot when nothing changed, and few when demand moves a little", async () => {
    const fleet = await threeClusters("{ headroom: 0, headroomMs: 0, gateMs: 0 }");
    const first = planned(inputsOf(fleet));
    const second = planned(inputsOf(fleet), stored(first));
    for (const cluster of ["a", "b", "c"]) expect(cellOf(second, cluster).ring).toBe(cellOf(first, cluster).ring);
    const third = planned(inputsOf(fleet, { demandRps: { b: { chat: 121 } } }), stored(first));
    const [before, after] = [cellOf(first, "b"), cellOf(third, "b")];
    const moved = decodeRing(after).filter(
      (owner, slot) => after.engines[owner] !== before.engines[decodeRing(before)[slot]!],
    ).length;
    const shift = Math.abs(sharesOf(after)["engine-c"]! - sharesOf(before)["engine-c"]!);
    expect(moved).toBe(Math.round(shift * 4096));
    expect(moved).toBeGreaterThan(0);
  });

  it("gives the same plan with and without the addon", async () => {
    const inputs = inputsOf(await threeClusters());
    const [auto, ts] = (["auto", "ts"] as const).map(
      (want) => plan(inputs, null, null, NO_LIMIT, { curves: createCurveEvaluator(want), solver: want }).publication,
    );
    expect(auto).toEqual(ts);
  });

  it("gives the same next plan with and without the addon, from the last tree and with moves priced", async () => {
    const fleet = await threeClusters("{ gateMs: 0 }");
    const [auto, ts] = (["auto", "ts"] as const).map((solver) => {
      const first = plan(inputsOf(fleet), null, null, NO_LIMIT, { solver });
      const next = inputsOf(fleet, { demandRps: { b: { chat: 112 }, c: { chat: 47 } } });
      return plan(next, stored(first.publication!), structuredClone(first.warm), NO_LIMIT, { solver });
    });
    expect(auto!.publication).toEqual(ts!.publication);
    expect(auto!.warm).toEqual(ts!.warm);
  });

  it("survives the way to a worker thread and into a store", async () => {
    const inputs = structuredClone(inputsOf(await threeClusters()));
    const sent = plan(inputs, null, null, NO_LIMIT);
    const received = structuredClone(sent);
    expect(received).toEqual(sent);
    const publication = received.publication!;
    for (const [name, snapshot] of publication.clusters)
      expect(parseClusterSnapshot(JSON.stringify(snapshot), name)).toEqual(snapshot);
    const problem: unknown = JSON.parse(JSON.stringify(publication.problem));
    expect(verifyCertificate({ ...publication, problem })).toEqual([]);
  });
});

describe("the plan's other outcomes", () => {
  it("sheds by the steps of the price when the example's demand rises by a fifth, and says how much", async () => {
    const fleet = await threeClusters();
    const publication = planned(
      inputsOf(fleet, {
        demandRps: { a: { chat: 108 }, b: { chat: 144 }, c: { chat: 48 } },
        engines: Object.fromEntries([...fleet.engines.keys()].map((id) => [id, { severity: 0.06 }])),
      }),
    );
    expect(cellOf(publication, "a").shed).toBeCloseTo(0.12963, 4);
    expect(cellOf(publication, "b").shed).toBeCloseTo(0.125, 4);
    expect(cellOf(publication, "c").shed).toBeCloseTo(0.1, 4);
    expect(cellOf(publication, "b").priceMs).toBeGreaterThanOrEqual(60_000);
    expect(publication.clusters.get("a")!.engines["engine-a"]!.plannedFactor).toBeCloseTo(0.94, 12);
  });

  const priorities = (engines: string, cells = "a: { high: 60, low: 60 }") =>
    fleetOf(
      `
clusters: { a: { region: r } }
engines: { ${engines} }
classes:
  high: { model: m, work: 1, priority: 10 }
  low: { model: m, work: 0.1, priority: 1 }
profiles: { p: { file: p.yaml } }
demandRps: { ${cells} }
`,
      { "p.yaml": EXAMPLE_PROFILE },
    );
  const engine = (id: string, more = "") =>
    `${id}: { url: "http://${id}.example", region: r, models: [m], profile: p, capacityWps: 50 ${more} }`;

  it("sheds all of the low priority before any of the high", async () => {
    const publication = planned(inputsOf(await priorities(engine("e"))));
    expect(cellOf(publication, "a", "low").shed).toBe(1);
    expect(cellOf(publication, "a", "high").shed).toBeCloseTo(1 / 6, 4);
  });

  it("gives equal engines equal shares", async () => {
    const publication = planned(
      inputsOf(await priorities([engine("e"), engine("f"), engine("g"), engine("h")].join(", "))),
    );
    expect(new Set(cellOf(publication, "a", "high").weights)).toEqual(new Set([0.25]));
    const snapshot = publication.clusters.get("a");
    const loads = ["e", "f", "g", "h"].map((id) => loadOf(snapshot, id));
    for (const load of loads) expect(load).toBeCloseTo(loads[0]!, 9);
  });

  it("keeps every ring within a slot of its weights, and full engines within their capacity", async () => {
    const fleet: Fleet = await priorities(
      `${engine("e")}, ${engine("f", ", replicas: 2")}, ${engine("g", ", replicas: 3")}`,
      "a: { high: 280, low: 70 }",
    );
    const publication = planned(inputsOf(fleet));
    for (const { cells, engines } of publication.clusters.values()) {
      for (const cell of cells) {
        const shares = sharesOf(cell);
        for (const [at, id] of cell.engines.entries())
          expect(Math.abs(shares[id]! - cell.weights[at]!)).toBeLessThan(1 / 4096);
      }
      for (const { loadWps, capacityWps } of Object.values(engines))
        expect(loadWps).toBeLessThanOrEqual(capacityWps * (1 + 1e-9));
    }
  });

  it("plans for more equal engines than a ring has slots", async () => {
    const ids = Array.from({ length: 150 }, (_, at) => engine(`e${at}`));
    const fleet = await priorities(ids.join(", "), "a: { high: 1000 }");
    const publication = planned(inputsOf({ ...fleet, policy: { ...fleet.policy, slots: 64 } }));
    const cell = cellOf(publication, "a", "high");
    expect(cell.engines).toHaveLength(64);
    expect(new Set(Object.values(sharesOf(cell)))).toEqual(new Set([1 / 64]));
  });

  it("routes all of a cell to the only engine", async () => {
    const publication = planned(inputsOf(await priorities(engine("e"), "a: { high: 1 }")));
    expect(sharesOf(cellOf(publication, "a", "high"))).toEqual({ e: 1 });
    expect(cellOf(publication, "a", "high").reserves).toEqual([]);
  });

  it("has weights for classes that nothing asks for yet", async () => {
    const publication = planned(inputsOf(await priorities([engine("e"), engine("f")].join(", "), "")));
    for (const name of ["high", "low"]) {
      const cell = cellOf(publication, "a", name);
      expect(cell).toMatchObject({ demandRps: 0.001, shed: 0 });
      expect(cell.weights).toEqual([0.5, 0.5]);
      expect(cell.streamLimit).toBeGreaterThanOrEqual(4);
    }
  });

  it("takes no share from an engine that drains, and gives its share back when it returns", async () => {
    const fleet = await priorities([engine("e"), engine("f"), engine("g")].join(", "), "a: { high: 40 }");
    const first = planned(inputsOf(fleet));
    const drained = planned(inputsOf(fleet, { engines: { f: { adminState: "draining" } } }), stored(first));
    expect(Object.keys(sharesOf(cellOf(drained, "a", "high")))).toEqual(["e", "g"]);
    expect(drained.clusters.get("a")!.engines.f).toMatchObject({
      adminState: "draining",
      capacityWps: 0,
      loadWps: 0,
    });
    const back = planned(inputsOf(fleet), stored(drained));
    // All but what is not worth the price of a move, 1 ms a request.
    const [shares, before] = [sharesOf(cellOf(back, "a", "high")), sharesOf(cellOf(first, "a", "high"))];
    for (const id of ["e", "f", "g"]) expect(Math.abs(shares[id]! - before[id]!)).toBeLessThan(0.002);
  });

  it("sheds all and keeps the last weights when every engine is out", async () => {
    const fleet = await threeClusters();
    const first = planned(inputsOf(fleet));
    const engines = Object.fromEntries([...fleet.engines.keys()].map((id) => [id, { readyReplicas: 0 }]));
    const dark = planned(inputsOf(fleet, { engines }), stored(first));
    for (const cluster of ["a", "b", "c"]) {
      expect(cellOf(dark, cluster).shed).toBe(1);
      expect(cellOf(dark, cluster).ring).toBe(cellOf(first, cluster).ring);
    }
  });

  it("starts with capacity over distance where every engine is out from the beginning", async () => {
    const fleet = await threeClusters();
    const engines = Object.fromEntries([...fleet.engines.keys()].map((id) => [id, { adminState: "out" as const }]));
    const { weights, engines: ids, shed } = cellOf(planned(inputsOf(fleet, { engines })), "a");
    expect(shed).toBe(1);
    const byId = new Map(ids.map((id, at) => [id, weights[at]!]));
    // 100 ÷ (2 + 40 + 1) against 80 ÷ (140 + 40 + 1).
    expect(byId.get("engine-a")! / byId.get("engine-c")!).toBeCloseTo(100 / 43 / (80 / 181), 9);
  });

  it("publishes clusters without cells for a fleet without engines", async () => {
    const { status, publication } = plan(
      inputsOf(await fleetOf("clusters: { a: { region: r } }")),
      null,
      null,
      NO_LIMIT,
    );
    expect(status).toBe("solved");
    expect(publication!.clusters.get("a")).toMatchObject({ cells: [], engines: {}, gateways: 2 });
    expect(verifyCertificate(publication!)).toEqual([]);
  });

  it("names a cell that no engine may serve, and plans the others", async () => {
    const fleet = await fleetOf(
      `
clusters: { a: { region: r }, far: { region: s } }
engines: { ${engine("e")} }
classes: { near: { model: m, work: 1, needs: { networkMs: 20 } } }
profiles: { p: { file: p.yaml } }
`,
      { "p.yaml": EXAMPLE_PROFILE },
    );
    const { message, publication } = plan(inputsOf(fleet), null, null, NO_LIMIT);
    expect(message).toBe("no engine may serve near from far");
    expect(publication!.clusters.get("far")!.cells).toEqual([]);
    expect(publication!.clusters.get("a")!.cells).toHaveLength(1);
    expect(verifyCertificate(publication!)).toEqual([]);
  });

  it("publishes nothing for inputs that can't be a problem, and says which", async () => {
    const result = plan(
      inputsOf(await threeClusters(), { demandRps: { b: { chat: Number.NaN } } }),
      null,
      null,
      NO_LIMIT,
    );
    expect(result).toMatchObject({ status: "not-finite", message: "demandRps of b chat is NaN", publication: null });
  });

  it("publishes what it has when its time is up", async () => {
    let now = 0;
    const inputs = inputsOf(await threeClusters());
    const result = plan(inputs, null, null, { deadlineMs: 25 }, { solver: "lp", nowMs: () => (now += 10) });
    expect(result.status).toBe("capped");
    expect(verifyCertificate(result.publication!)).toEqual([]);
  });
});
