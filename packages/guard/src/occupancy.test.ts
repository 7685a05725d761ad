import { describe, expect, it } from "vitest";
import { type AdmissionClass, Occupancy } from "./occupancy.ts";
import { LocalStreams } from "./stream-counts.ts";

/** Streams of a class's part at full load: so many that chance is small against them. */
const PART = 10_000;

const classOf = (name: string, more: Partial<AdmissionClass> = {}): AdmissionClass => ({
  name,
  model: "m",
  priority: 0,
  streamLimit: 1.25 * PART,
  work: 1,
  streamWps: 1,
  engineLimit: Number.POSITIVE_INFINITY,
  ...more,
});

function occupancyOf(classes: readonly AdmissionClass[], maxStreams = Number.POSITIVE_INFINITY): Occupancy {
  const occupancy = new Occupancy(new LocalStreams());
  occupancy.adopt(classes, maxStreams);
  return occupancy;
}

let nowMs = 0;

/** Lets in as many as there is room for, one each second: slower than any engine works. */
function fill(occupancy: Occupancy, name: string, most = 100_000): number {
  let count = 0;
  for (; count < most && occupancy.refusal(name, nowMs) === null; count++) {
    occupancy.entered(name, nowMs);
    nowMs += 1000;
  }
  return count;
}

/** As many as there is room for, in parts. */
const parts = (occupancy: Occupancy, name: string): number => fill(occupancy, name) / PART;

const LATER_MS = 1e12;
const high = classOf("high", { priority: 10 });
const low = classOf("low");

describe("occupancy", () => {
  it("of one class alone has the plain limit", () => {
    const occupancy = occupancyOf([low]);
    expect([parts(occupancy, "low"), occupancy.refusal("low", LATER_MS)]).toEqual([1.25, "class-limit"]);
    occupancy.left("low");
    expect(occupancy.refusal("low", LATER_MS)).toBeNull();
  });

  it("lets a class use what another does not, up to what the engines hold", () => {
    const occupancy = occupancyOf([high, low]);
    expect(parts(occupancy, "low")).toBeCloseTo(2, 1);
    expect([occupancy.refusal("low", LATER_MS), occupancy.occupancy("low").toFixed(1)]).toEqual(["priority", "1.0"]);
  });

  it("stops the lowest priority first and the highest last", () => {
    const occupancy = occupancyOf([high, classOf("middle", { priority: 5 }), low]);
    fill(occupancy, "low", PART);
    expect(parts(occupancy, "middle")).toBeCloseTo(1.125 * 3 - 1, 1);
    expect(occupancy.refusal("low", LATER_MS)).toBe("priority");
    expect(parts(occupancy, "high")).toBeCloseTo(0.125 * 3, 1);
    expect(occupancy.refusal("high", LATER_MS)).toBe("class-limit");
  });

  it("lets a class have its planned part even where others hold more than theirs", () => {
    const occupancy = occupancyOf([high, low]);
    expect(fill(occupancy, "high", 2.1 * PART)).toBe(2.1 * PART);
    expect([fill(occupancy, "low", 30), occupancy.refusal("low", LATER_MS)]).toEqual([30, null]);
  });

  it("makes way for a higher priority that was just refused", () => {
    const occupancy = occupancyOf([high, low]);
    fill(occupancy, "high");
    expect(occupancy.refusal("high", LATER_MS)).toBe("class-limit");
    occupancy.left("high");
    const refusals = [999, 1000].map((ms) => occupancy.refusal("low", LATER_MS + ms));
    expect(refusals).toEqual(["priority", null]);
  });

  it("holds the lower priority to the rate at which engines work and fill up, once they are nearly full", () => {
    const classes = [high, low].map((each) => ({ ...each, streamLimit: 125 }));
    const occupancy = occupancyOf(classes);
    // 200 units/s at full load, 40 of them at once; below 0.8 nobody counts.
    for (let i = 0; i < 160; i++) occupancy.entered("low", 0);
    // In 0.1 s 20 · (1 + 1.05 − O), O being 0.805 when the first of them is let in.
    for (let i = 0; i < 10; i++) occupancy.entered("high", 100);
    expect([occupancy.refusal("low", 100), occupancy.refusal("high", 100)]).toEqual([null, null]);
    for (let i = 0; i < 15; i++) occupancy.entered("low", 100);
    expect([occupancy.refusal("low", 100), occupancy.refusal("high", 100)]).toEqual(["priority", null]);
    expect(occupancy.refusal("low", 105)).toBeNull();
  });

  it.each([
    [0.8, 1.25],
    [1, 1.05],
    [1.1, 0.95],
    [1.2, 0.9],
  ])("at %d full lets the lower priority in at %d of the rate at which engines work", (full, rate) => {
    const occupancy = occupancyOf([high, low].map((each) => ({ ...each, streamLimit: 125 })));
    for (let i = 0; i < Math.round(200 * full); i++) occupancy.entered("high", 0);
    let count = 0;
    for (let ms = 1; ms <= 10_000; ms++) {
      if (occupancy.refusal("low", ms) !== null) continue;
      occupancy.entered("low", ms);
      occupancy.left("low");
      count += 1;
    }
    // 200 units/s for ten seconds.
    expect(count / 2000).toBeCloseTo(rate, 2);
  });

  it("lets few streams vary by chance: a small fleet with room to spare sends nobody away", () => {
    const small = classOf("small", { streamLimit: 1.25 * 9 });
    expect(fill(occupancyOf([small]), "small")).toBe(9 + 4 * 3);
    const two = [classOf("high", { priority: 10, streamLimit: 1.25 * 8 }), classOf("low", { streamLimit: 1.25 * 8 })];
    expect(fill(occupancyOf(two), "low")).toBe(16 + 3 * 4);
  });

  it("measures streams of different classes by the work that they are", () => {
    const occupancy = occupancyOf([classOf("big", { priority: 10, streamWps: 3 }), low]);
    // Full is one part × 3 + one part × 1.
    expect(parts(occupancy, "low")).toBeCloseTo(4, 0);
  });

  it("is of each model alone, and a silent class may use the engines of its model while there is room", () => {
    const silent = classOf("silent", { streamLimit: 1 });
    const occupancy = occupancyOf([low, silent, classOf("other", { model: "n" })]);
    expect(parts(occupancy, "silent")).toBeGreaterThan(1);
    expect(parts(occupancy, "other")).toBe(1.25);
  });

  it("holds the gateway's own limit, the last tenth of it for the higher priorities", () => {
    const occupancy = occupancyOf([high, low], 20);
    expect([fill(occupancy, "low"), occupancy.refusal("low", LATER_MS)]).toEqual([18, "gateway-limit"]);
    expect([fill(occupancy, "high"), occupancy.refusal("high", LATER_MS)]).toEqual([2, "gateway-limit"]);
  });

  it("holds the hard limit of the engines", () => {
    const occupancy = occupancyOf([classOf("chat", { engineLimit: 6 })]);
    expect([fill(occupancy, "chat"), occupancy.refusal("chat", LATER_MS)]).toEqual([6, "engine-limit"]);
  });

  it("keeps what is held over a newer snapshot, and lets in a class that no snapshot names", () => {
    const occupancy = occupancyOf([low]);
    fill(occupancy, "low", 30);
    occupancy.adopt([classOf("low", { streamLimit: 5 })], 100);
    const refusals = ["low", "unknown"].map((name) => occupancy.refusal(name, LATER_MS));
    expect([occupancy.held("low"), ...refusals]).toEqual([30, "class-limit", null]);
  });
});
