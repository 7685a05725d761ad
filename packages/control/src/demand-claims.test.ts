import { describe, expect, it } from "vitest";
import { DemandClaims } from "./demand-claims.ts";
import { demand, SECOND } from "./testing/harness.ts";

const unplanned = () => 0;

/** What becomes of these counts of a gateway's first seconds. */
function refusals(counts: readonly number[], planned: (requestClass: string) => number = unplanned) {
  const claims = new DemandClaims();
  return counts.map((offered, seq) => claims.refuse(demand(offered, seq), planned, seq * SECOND)?.most ?? null);
}

describe("what a report may say", () => {
  it("is refused where it is ten million arrivals, whatever was known, and so is what follows it for seconds", () => {
    expect(refusals([5, 5, 10_000_000, 5])).toEqual([null, null, expect.closeTo(1050, -1), null]);
    expect(refusals([10_000_000], () => 90)).toEqual([1900]);
    // Never, in a second: no gateway takes them.
    const claims = refusals(Array.from({ length: 60 }, () => 10_000_000));
    expect(claims.every((most) => most !== null && most <= 1_001_000)).toBe(true);
  });

  it("may be a thousand arrivals from an idle gateway, and ten times what the gateway or the plan had", () => {
    expect(refusals([1000])).toEqual([null]);
    expect(refusals([1001])).toEqual([1000]);
    expect(refusals([500, 6000])).toEqual([null, expect.closeTo(5942, -1)]);
    expect(refusals([500, 5900])).toEqual([null, null]);
    expect(refusals([6000], () => 500)).toEqual([null]);
  });

  it("is believed at the third second of a crowd a hundred times as large", () => {
    const crowd = refusals([200, 20_000, 20_000, 20_000]);
    expect(crowd.map((most) => most === null)).toEqual([true, false, true, true]);
    expect(refusals([1, 90_000, 90_000, 90_000]).map((most) => most === null)).toEqual([true, false, false, true]);
  });

  it("is held against its window, and a short one against a whole second", () => {
    const claims = new DemandClaims();
    expect(claims.refuse(demand(60_000, 0, { windowMs: 60_000 }), () => 100, 0)).toBeNull();
    expect(claims.refuse(demand(62_000, 0, { gateway: "g2", windowMs: 60_000 }), () => 100, 0)?.most).toBe(61_000);
    // 900 arrivals in a millisecond are no rate of 900,000 that ten times as many could be built on.
    expect(claims.refuse(demand(900, 0, { gateway: "g3", windowMs: 1, leaving: true }), unplanned, 0)).toBeNull();
    expect(claims.refuse(demand(20_000, 1, { gateway: "g3" }), unplanned, SECOND)?.most).toBeLessThan(10_001);
  });

  it("is held against the gateway's own past, which fades", () => {
    const claims = new DemandClaims();
    const mostAt = (nowMs: number) => claims.refuse(demand(10_000_000, 1), unplanned, nowMs)!.most;
    for (let second = 0; second < 10; second++) claims.refuse(demand(1000, second), unplanned, second * SECOND);
    expect(claims.refuse(demand(2000, 0, { gateway: "g2" }), unplanned, 9 * SECOND)?.most).toBe(1000);
    expect(mostAt(9 * SECOND + 60_000)).toBeCloseTo(1000 + 10 * 500, -1);
  });
});
