import { encodeRing, type StoredPublication } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { keysMoved, Published } from "./published.ts";
import { evenPublication, testFleet } from "./testing/fleet.ts";

async function publicationOf(owners: number[], demand: [number, number] = [3, 1]): Promise<StoredPublication> {
  const fleet = await testFleet();
  const demandRps = new Map([
    ["east\nchat", demand[0]],
    ["west\nchat", demand[1]],
  ]);
  const publication = evenPublication({ wallMs: 0, fleet, demandRps, engines: new Map(), gateways: new Map() });
  publication.clusters.get("east")!.cells[0]!.ring = encodeRing(Uint16Array.from(owners), 2);
  return { version: 1, epoch: 1, ...publication };
}

describe("what is published", () => {
  it("shows shares as the ring gives them, to the slot", async () => {
    const published = new Published();
    await published.replace(await publicationOf([0, 0, 0, 1]));
    expect(published.shares.get("e1")).toEqual({ east: { chat: 0.75 }, west: { chat: 0.5 } });
    expect(published.shares.get("e2")).toEqual({ east: { chat: 0.25 }, west: { chat: 0.5 } });
  });

  it("measures the part of all requests whose key moved, by demand", async () => {
    const before = await publicationOf([0, 0, 0, 1]);
    expect(keysMoved(before, before)).toBe(0);
    // A quarter of the slots of the cluster that has three quarters of the demand.
    expect(keysMoved(before, await publicationOf([0, 0, 1, 1]))).toBeCloseTo((0.25 * 3) / 4, 12);
  });

  it("goes by engines, not by their places in the list", async () => {
    const before = await publicationOf([0, 0, 0, 1]);
    const after = await publicationOf([1, 1, 1, 0]);
    const cell = after.clusters.get("east")!.cells[0]!;
    cell.engines = [...cell.engines].reverse();
    expect(keysMoved(before, after)).toBe(0);
  });

  it("has no figure when nothing can be compared", async () => {
    const before = await publicationOf([0, 0, 0, 1]);
    expect(keysMoved({ ...before, clusters: new Map() }, before)).toBeNull();
  });
});
