import { DEMAND_FLOOR_RPS } from "@guidevane/core";
import { DemandLevels } from "@guidevane/signals";
import { describe, expect, it } from "vitest";
import { demandOf } from "./demand.ts";
import { evenPublication, testFleet } from "./testing/fleet.ts";

const EAST = "east\nchat";
const WEST = "west\nchat";

/** A gateway of east that has seen this much a second for so long. */
function reported(offered: number, seconds = 60): DemandLevels {
  const levels = new DemandLevels();
  const counts = { offered, work: offered, retries: 0, clientRetries: 0, shed: 0 };
  for (let seq = 1; seq <= seconds + 1; seq++)
    levels.add({ gateway: "g", cluster: "east", seq, windowMs: 1000, classes: { chat: counts }, engines: {} }, 0);
  return levels;
}

describe("demand before gateways report", () => {
  it("is the fleet file's; a cell that it leaves out beside others of its model has the floor", async () => {
    const demand = demandOf(await testFleet(), new DemandLevels(), null, 0);
    expect(demand.get(EAST)).toEqual({ rps: 7, deviationRps: 0, source: "fleet" });
    expect(demand.get(WEST)).toEqual({ rps: DEMAND_FLOOR_RPS, deviationRps: 0, source: "assumed" });
  });

  it("is half the model's capacity in equal parts, in work, where the file says nothing", async () => {
    const fleet = { ...(await testFleet()), demandRps: new Map() };
    // (100 × 1 + 60 × 2) work units/s, halved, over two cells whose requests cost 2 each.
    const demand = demandOf(fleet, new DemandLevels(), null, 0);
    expect(demand.get(EAST)).toEqual({ rps: 27.5, deviationRps: 0, source: "assumed" });
    expect(demand.get(WEST)).toEqual({ rps: 27.5, deviationRps: 0, source: "assumed" });
  });

  it("is the last published before the fleet file's", async () => {
    const fleet = await testFleet();
    const inputs = { wallMs: 0, fleet, demandRps: new Map([[EAST, 33]]), engines: new Map(), gateways: new Map() };
    const stored = { version: 4, epoch: 1, ...evenPublication(inputs) };
    expect(demandOf(fleet, new DemandLevels(), stored, 0).get(EAST)).toEqual({
      rps: 33,
      deviationRps: 0,
      source: "stored",
    });
  });
});

describe("demand once gateways report", () => {
  it("B143: is theirs for their cluster alone, and zero is the floor", async () => {
    const fleet = await testFleet();
    expect(demandOf(fleet, reported(12), null, 0).get(EAST)?.source).toBe("reported");
    expect(demandOf(fleet, reported(12), null, 0).get(EAST)?.rps).toBeCloseTo(12, 9);
    expect(demandOf(fleet, reported(12), null, 0).get(WEST)?.source).toBe("assumed");
    const quiet = reported(12);
    for (let seq = 62; seq < 600; seq++)
      quiet.add({ gateway: "g", cluster: "east", seq, windowMs: 1000, classes: {}, engines: {} }, seq * 1000);
    expect(demandOf(fleet, quiet, null, 600_000).get(EAST)).toMatchObject({
      rps: DEMAND_FLOOR_RPS,
      source: "reported",
    });
  });

  it("is drawn towards what was known before while it is young, so that chance sheds nothing", async () => {
    const fleet = await testFleet();
    const rpsAfter = (offered: number, seconds: number) =>
      demandOf(fleet, reported(offered, seconds), null, 0).get(EAST)!.rps;
    expect(rpsAfter(9, 3)).toBeCloseTo(7 + (9 - 7) * 0.1, 9);
    expect(rpsAfter(5, 15)).toBeCloseTo(7 + (5 - 7) * 0.5, 9);
    expect(rpsAfter(5, 30)).toBeCloseTo(5, 9);
  });

  it("is believed at once when it rises beyond chance", async () => {
    // 7 ± 3 × √(7 / 3 s)
    expect(demandOf(await testFleet(), reported(20, 3), null, 0).get(EAST)!.rps).toBeCloseTo(20, 9);
  });
});
