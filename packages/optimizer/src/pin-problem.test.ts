import type { Fleet, Pin, Publication, StoredPublication } from "@guidevane/core";
import { beforeAll, describe, expect, it } from "vitest";
import { inputsOf, threeClusters } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import type { Plan, PlanInputs } from "./plan-types.ts";
import { verifyCertificate } from "./verify.ts";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await threeClusters();
});

const pinOf = (weights: Record<string, number>, more: Partial<Pin> = {}): Pin => ({
  cluster: "a",
  class: "chat",
  weights,
  until: "2026-01-01T00:00:00.000Z",
  ...more,
});

function planned(
  pins: readonly Pin[],
  inputs: PlanInputs = inputsOf(fleet),
  previous: StoredPublication | null = null,
) {
  const result: Plan = plan({ ...inputs, pins }, previous, null, { deadlineMs: null });
  if (result.publication === null) throw new Error(`${result.status}: ${result.message}`);
  return { ...result, publication: result.publication };
}

function cellOf(publication: Publication, cluster: string) {
  const cell = publication.clusters.get(cluster)!.cells.find((each) => each.class === "chat")!;
  return { ...cell, by: Object.fromEntries(cell.engines.map((id, at) => [id, cell.weights[at]!])) };
}

const loadOf = (publication: Publication, id: string) => publication.clusters.get("a")!.engines[id]!;

describe("a pinned cell", () => {
  it("gets the weights that were said, the rest of the fleet is planned around them, and the plan verifies", () => {
    const engines = [...fleet.engines.keys()];
    const free = planned([]);
    const pin = pinOf({ [engines[0]!]: 0.25, [engines[2]!]: 0.75 });
    const { publication } = planned([pin]);
    expect(cellOf(publication, "a").by[engines[0]!]).toBeCloseTo(0.25, 3);
    expect(cellOf(publication, "a").by[engines[2]!]).toBeCloseTo(0.75, 3);
    expect(cellOf(publication, "a").pin).toEqual({ weights: pin.weights, until: pin.until });
    expect(cellOf(publication, "b").pin).toBeUndefined();
    expect(verifyCertificate(publication)).toEqual([]);
    // The third engine is taken: what the free plan had there of the other clusters has to go elsewhere.
    expect(cellOf(publication, "c").by).not.toEqual(cellOf(free.publication, "c").by);
    const certificate = publication.clusters.get("a")!.certificate;
    expect(certificate.objectiveMs).toBeGreaterThan(free.publication.clusters.get("a")!.certificate.objectiveMs);
    for (const id of engines) {
      const { loadWps, capacityWps } = loadOf(publication, id);
      expect(loadWps).toBeLessThanOrEqual(capacityWps * (1 + 3 / 4096));
    }
  });

  it("sheds what a pinned engine can not take", () => {
    const [first] = fleet.engines.keys();
    const demand = inputsOf(fleet, { demandRps: { a: { chat: 300 }, b: { chat: 1 }, c: { chat: 1 } } });
    const { publication } = planned([pinOf({ [first!]: 1 })], demand);
    const { by, shed } = cellOf(publication, "a");
    expect(by).toEqual({ [first!]: 1 });
    expect(shed).toBeGreaterThan(0.5);
    expect(verifyCertificate(publication)).toEqual([]);
  });

  it("leaves a dead engine's part to the pin's others, and the cell to the optimizer when none is left", () => {
    const [first, second, third] = [...fleet.engines.keys()] as [string, string, string];
    const pin = pinOf({ [first]: 0.2, [second]: 0.2, [third]: 0.6 });
    const dead = inputsOf(fleet, { engines: { [third]: { readyReplicas: 0 } } });
    const { by } = cellOf(planned([pin], dead).publication, "a");
    expect(by[first]).toBeCloseTo(0.5, 3);
    expect(by[second]).toBeCloseTo(0.5, 3);
    const lone = cellOf(planned([pinOf({ [third]: 1 })], dead).publication, "a");
    expect(lone.by).toEqual(cellOf(planned([], dead).publication, "a").by);
  });

  it("does nothing when it stands where the optimizer would have put the weights", () => {
    const free = planned([]).publication;
    const { publication } = planned([pinOf(cellOf(free, "a").by)]);
    const [one, other] = [free, publication].map((each) => each.clusters.get("a")!.certificate.objectiveMs);
    expect(Math.abs(one! - other!)).toBeLessThan(1e-3 * one!);
    for (const cluster of ["b", "c"]) {
      for (const [id, weight] of Object.entries(cellOf(free, cluster).by))
        expect(Math.abs((cellOf(publication, cluster).by[id] ?? 0) - weight)).toBeLessThan(0.01);
    }
  });

  it("is planned for at once when its pin comes, changes or ends, however little it gains", () => {
    const free = { ...planned([]).publication, version: 1, epoch: 1 };
    const pinned = pinOf(cellOf(free, "a").by);
    const stored = { ...planned([pinned], inputsOf(fleet), free).publication, version: 2, epoch: 1 };
    const next = (pins: readonly Pin[], previous: StoredPublication) =>
      plan({ ...inputsOf(fleet), pins }, previous, null, { deadlineMs: null }).gate;
    expect(next([], free).held).toBe(true);
    expect(next([pinned], stored).held).toBe(true);
    expect(next([pinned], free)).toMatchObject({ held: false, why: "the pin of a chat changed" });
    expect(next([{ ...pinned, until: "2027-01-01T00:00:00.000Z" }], stored).held).toBe(false);
    expect(next([], stored)).toMatchObject({ held: false, why: "the pin of a chat changed" });
  });

  it("need not move while nothing but its pin keeps the fleet from the optimum", () => {
    const [first, second] = [...fleet.engines.keys()] as [string, string];
    const pins = [pinOf({ [first]: 0.5, [second]: 0.5 })];
    const stored = { ...planned(pins).publication, version: 1, epoch: 1 };
    // The pin costs many times what the gate lets pass, and so does it to the certificate that is published.
    const { certificate } = stored.clusters.get("a")!;
    expect(certificate.gapMs).toBeGreaterThan(5);
    const { gate } = plan({ ...inputsOf(fleet), pins }, stored, null, { deadlineMs: null });
    expect(gate).toMatchObject({ held: true, why: expect.stringMatching(/may be gained$/) });
    expect(gate.certificate!.gapMs).toBeLessThan(0.1);
  });

  it("starts from the plan before, and moves nothing when nothing changes", async () => {
    const solving = await threeClusters("{ headroom: 0, headroomMs: 0, gateMs: 0 }");
    const [first, second] = [...solving.engines.keys()] as [string, string];
    const pins = [pinOf({ [first]: 0.5, [second]: 0.5 })];
    const before = planned(pins, inputsOf(solving));
    const stored = { ...before.publication, version: 1, epoch: 1 };
    const again = plan({ ...inputsOf(solving), pins }, stored, before.warm, { deadlineMs: null });
    expect(again.status).toBe("solved");
    for (const [cluster, { cells }] of stored.clusters)
      expect(again.publication!.clusters.get(cluster)!.cells.map(({ ring }) => ring)).toEqual(
        cells.map(({ ring }) => ring),
      );
  });
});
