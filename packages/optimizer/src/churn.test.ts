import { decodeRing, type Fleet, type Publication, type StoredPublication } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { fleetOf, inputsOf } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import type { SolverWant } from "./plan-types.ts";
import type { StoredProblem } from "./stored-problem.ts";
import { verifyCertificate } from "./verify.ts";

/** Q = 400ρ on two engines of 100 at no distance; all delay in one curve. */
function twins(churnMs: number): Promise<Fleet> {
  const engine = (id: string) =>
    `${id}: { url: "http://${id}.example", region: a, models: [m], profile: p, capacityWps: 100 }`;
  return fleetOf(
    `
clusters: { a: { region: a } }
engines: { ${engine("e")}, ${engine("f")} }
classes: { chat: { model: m, work: 1.0 } }
profiles: { p: { file: p.yaml } }
demandRps: { a: { chat: 100 } }
policy: { headroom: 0, headroomMs: 0, slots: 65536, gateMs: 0, churnMs: ${churnMs} }
`,
    {
      "p.yaml": `
profile: p
reference: { promptTokens: 100, outputTokens: 1 }
work: { prefillPerKtok: 9, decodePerKtok: 100 }
prefillMsPerTok: 0
loop: open
capacityWps: 100
ttftMs: [[0, 0], [1, 400]]
tbotMs: [[0, 0], [1, 0]]
`,
    },
  );
}

/** What was published before: 60 % at e, 40 % at f. */
function published(first: Publication): StoredPublication {
  const clusters = new Map(first.clusters);
  const snapshot = structuredClone(clusters.get("a")!);
  snapshot.cells[0]!.weights = [0.6, 0.4];
  snapshot.cells[0]!.ring = "";
  clusters.set("a", snapshot);
  return { ...first, clusters, version: 1, epoch: 1 };
}

async function replanned(churnMs: number, solver: SolverWant = "auto") {
  const inputs = inputsOf(await twins(churnMs));
  const options = { evenLoadMs: 0, solver };
  const first = plan(inputs, null, null, { deadlineMs: null }, options).publication!;
  expect(first.clusters.get("a")!.cells[0]!.weights).toEqual([0.5, 0.5]);
  const { publication } = plan(inputs, published(first), null, { deadlineMs: null }, options);
  expect(verifyCertificate(publication!)).toEqual([]);
  const snapshot = publication!.clusters.get("a")!;
  return { cell: snapshot.cells[0]!, certificate: snapshot.certificate, publication: publication! };
}

describe("the price of a move", () => {
  it.each(["ts", "lp"] as const)(
    "lets %s move only what gains more than it, from 60 : 40 to 55 : 45 at 80 ms",
    async (solver) => {
      const { cell, certificate } = await replanned(80, solver);
      expect(cell.weights[0]).toBeCloseTo(0.55, solver === "lp" ? 3 : 4);
      expect(cell.priceMs).toBeCloseTo(440, solver === "lp" ? -1 : 6);
      // 5 requests/s moved at 80 ms, over 100 requests/s.
      expect(certificate.objectiveMs).toBeCloseTo(206, 3);
      expect(certificate.gap).toBeLessThan(1e-5);
      // Without the price of moves the even split costs 200, and the plan's 202.
      expect(certificate.churnFree.objectiveMs).toBeCloseTo(202, solver === "lp" ? 1 : 3);
      expect(certificate.churnFree.lowerBoundMs).toBeLessThanOrEqual(200);
    },
  );

  it.each([160, 200, 5000])("holds the weights where a move costs %s ms", async (churnMs) => {
    const { cell, certificate } = await replanned(churnMs);
    expect(cell.weights[0]).toBeCloseTo(0.6, 9);
    // A ring is exact to half a slot of 65,536, and a move of that much is counted too.
    expect(certificate.gapMs).toBeLessThan(churnMs / 65_536 + 1e-3);
    expect(certificate.churnFree.objectiveMs).toBeCloseTo(208, 2);
  });

  it("prices a request of the held plan from 480 ms, and one more request at 416", async () => {
    const { cell } = await replanned(200);
    const stability = cell.addends.map((addends) => addends[4]);
    expect(cell.priceMs).toBeCloseTo(480, 6);
    expect(stability[0]).toBeCloseTo(0, 6);
    expect(stability[1]).toBeCloseTo(160, 6);
    // The weights take their part of one more request without a move: it costs what the weights' mix costs.
    const relief = cell.weights.reduce((sum, weight, at) => sum + weight * stability[at]!, 0);
    expect(cell.priceMs - relief).toBeCloseTo(416, 6);
  });

  it("explains every engine in use by addends that sum to the demand price", async () => {
    const { cell } = await replanned(80);
    for (const addends of cell.addends)
      expect(addends.reduce((sum, addend) => sum + addend, 0)).toBeCloseTo(cell.priceMs, 6);
    expect(cell.addends[1]![4]).toBeCloseTo(80, 6);
  });

  it("asks nothing of a cell that had no weights", async () => {
    const inputs = inputsOf(await twins(80));
    const { publication } = plan(inputs, null, null, { deadlineMs: null }, { evenLoadMs: 0 });
    const { churn } = publication!.problem as StoredProblem;
    expect(churn).toBeUndefined();
    const { certificate } = publication!.clusters.get("a")!;
    expect(certificate.churnFree.lowerBoundMs).toBe(certificate.lowerBoundMs);
  });

  it("moves not one slot in a hundred plans of inputs that stand still", async () => {
    const inputs = inputsOf(await twins(1), { demandRps: { a: { chat: 123.4567 } } });
    let previous: StoredPublication | null = null;
    let ring = "";
    for (let version = 1; version <= 100; version++) {
      const { publication } = plan(inputs, previous, null, { deadlineMs: null });
      const cell = publication!.clusters.get("a")!.cells[0]!;
      if (version > 1) expect(cell.ring).toBe(ring);
      ring = cell.ring;
      expect(decodeRing(cell)).toHaveLength(65_536);
      previous = { ...publication!, version, epoch: 1 };
    }
  });

  it("is found out when the publication claims another one", async () => {
    const { publication } = await replanned(80);
    const copy = structuredClone(publication);
    copy.clusters.get("a")!.cells[0]!.addends[1]![4] += 5;
    expect(verifyCertificate(copy).join("\n")).toContain("stability of f");
    const cheaper = structuredClone(publication);
    (cheaper.problem as StoredProblem).churn!.moveMs[0] = 10;
    expect(verifyCertificate(cheaper).join("\n")).toContain("certificate.objectiveMs");
  });
});
