import { describe, expect, it } from "vitest";
import { type AdmissionClass, Occupancy } from "./occupancy.ts";
import { LocalStreams } from "./stream-counts.ts";

const classOf = (name: string, more: Partial<AdmissionClass> = {}): AdmissionClass => ({
  name,
  model: "m",
  priority: 0,
  streamLimit: 12.5,
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

/** Lets in as many as there is room for, one each second: slower than any engine works. */
function fill(occupancy: Occupancy, name: string, most = 1000): number {
  let count = 0;
  for (; count < most && occupancy.refusal(name, count * 1000) === null; count++) occupancy.entered(name, count * 1000);
  return count;
}

const LATER_MS = 1e6;

const high = classOf("high", { priority: 10 });
const low = classOf("low");

describe("occupancy", () => {
  it("of one class alone has the plain limit", () => {
    const occupancy = occupancyOf([low]);
    expect([fill(occupancy, "low"), occupancy.refusal("low", LATER_MS)]).toEqual([13, "class-limit"]);
    occupancy.left("low");
    expect(occupancy.refusal("low", LATER_MS)).toBeNull();
  });

  it("lets a class use what another does not, up to what the engines hold", () => {
    const occupancy = occupancyOf([high, low]);
    expect([fill(occupancy, "low"), occupancy.refusal("low", LATER_MS)]).toEqual([20, "priority"]);
    expect(occupancy.occupancy("low")).toBe(1);
  });

  it("stops the lowest priority first and the highest last", () => {
    const occupancy = occupancyOf([high, low]);
    fill(occupancy, "low");
    expect([fill(occupancy, "high"), occupancy.refusal("high", LATER_MS)]).toEqual([5, "class-limit"]);
  });

  it("lets a class have its planned part even where others hold more than theirs", () => {
    const occupancy = occupancyOf([high, low]);
    expect(fill(occupancy, "high", 20)).toBe(20);
    expect([fill(occupancy, "low", 3), occupancy.refusal("low", LATER_MS)]).toEqual([3, null]);
  });

  it("makes way for a higher priority that was just refused", () => {
    const occupancy = occupancyOf([high, low]);
    fill(occupancy, "high");
    expect(occupancy.refusal("high", LATER_MS)).toBe("class-limit");
    occupancy.left("high");
    expect([occupancy.refusal("low", LATER_MS + 999), occupancy.refusal("low", LATER_MS + 1000)]).toEqual([
      "priority",
      null,
    ]);
  });

  it("holds the lower priority to the rate at which engines work, once they are nearly full", () => {
    const classes = [high, low].map((each) => ({ ...each, streamLimit: 125 }));
    const occupancy = occupancyOf(classes);
    // 200 units/s at full load, 80 of them at once; below 0.8 nobody counts.
    for (let i = 0; i < 160; i++) occupancy.entered("low", 0);
    for (let i = 0; i < 10; i++) occupancy.entered("high", 100);
    expect([occupancy.refusal("low", 100), occupancy.refusal("high", 100)]).toEqual([null, null]);
    for (let i = 0; i < 10; i++) occupancy.entered("low", 100);
    expect([occupancy.refusal("low", 100), occupancy.refusal("high", 100)]).toEqual(["priority", null]);
    expect(occupancy.refusal("low", 105)).toBeNull();
  });

  it("measures streams of different classes by the work that they are", () => {
    const occupancy = occupancyOf([classOf("big", { priority: 10, streamWps: 3 }), low]);
    // Full is 10 × 3 + 10 × 1.
    expect(fill(occupancy, "low")).toBe(40);
  });

  it("is of each model alone, and a silent class may use the engines of its model while there is room", () => {
    const silent = classOf("silent", { streamLimit: 1 });
    const occupancy = occupancyOf([low, silent, classOf("other", { model: "n" })]);
    expect(fill(occupancy, "silent")).toBeGreaterThan(10);
    expect(fill(occupancy, "other")).toBe(13);
  });

  it("holds the gateway's own limit, the last tenth of it for the higher priorities", () => {
    const occupancy = occupancyOf(
      [high, low].map((each) => ({ ...each, streamLimit: 1000 })),
      20,
    );
    expect([fill(occupancy, "low"), occupancy.refusal("low", LATER_MS)]).toEqual([18, "gateway-limit"]);
    expect([fill(occupancy, "high"), occupancy.refusal("high", LATER_MS)]).toEqual([2, "gateway-limit"]);
  });

  it("holds the hard limit of the engines", () => {
    const occupancy = occupancyOf([classOf("chat", { engineLimit: 6 })]);
    expect([fill(occupancy, "chat"), occupancy.refusal("chat", 0)]).toEqual([6, "engine-limit"]);
  });

  it("keeps what is held over a newer snapshot, and lets in a class that no snapshot names", () => {
    const occupancy = occupancyOf([low]);
    fill(occupancy, "low", 5);
    occupancy.adopt([classOf("low", { streamLimit: 5 })], 100);
    expect([occupancy.held("low"), occupancy.refusal("low", LATER_MS), occupancy.refusal("unknown", 0)]).toEqual([
      5,
      "class-limit",
      null,
    ]);
  });
});
