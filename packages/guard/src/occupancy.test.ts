import { describe, expect, it } from "vitest";
import { type AdmissionClass, Occupancy } from "./occupancy.ts";

const classOf = (name: string, more: Partial<AdmissionClass> = {}): AdmissionClass => ({
  name,
  model: "m",
  priority: 0,
  streamLimit: 12.5,
  streamWps: 1,
  engineLimit: Number.POSITIVE_INFINITY,
  ...more,
});

function occupancyOf(classes: readonly AdmissionClass[], maxStreams = Number.POSITIVE_INFINITY): Occupancy {
  const occupancy = new Occupancy();
  occupancy.adopt(classes, maxStreams);
  return occupancy;
}

/** Lets in as many as there is room for. */
function fill(occupancy: Occupancy, name: string, most = 1000): number {
  let count = 0;
  for (; count < most && occupancy.refusal(name, 0) === null; count++) occupancy.entered(name);
  return count;
}

const high = classOf("high", { priority: 10 });
const low = classOf("low");

describe("occupancy", () => {
  it("of one class alone has the plain limit", () => {
    const occupancy = occupancyOf([low]);
    expect([fill(occupancy, "low"), occupancy.refusal("low", 0)]).toEqual([13, "class-limit"]);
    occupancy.left("low");
    expect(occupancy.refusal("low", 0)).toBeNull();
  });

  it("lets a class use what another does not, up to what the engines hold", () => {
    const occupancy = occupancyOf([high, low]);
    expect([fill(occupancy, "low"), occupancy.refusal("low", 0)]).toEqual([20, "priority"]);
    expect(occupancy.occupancy("low")).toBe(1);
  });

  it("stops the lowest priority first and the highest last", () => {
    const occupancy = occupancyOf([high, low]);
    fill(occupancy, "low");
    expect([fill(occupancy, "high"), occupancy.refusal("high", 0)]).toEqual([5, "class-limit"]);
  });

  it("lets a class have its planned part even where others hold more than theirs", () => {
    const occupancy = occupancyOf([high, low]);
    expect(fill(occupancy, "high", 20)).toBe(20);
    expect([fill(occupancy, "low", 3), occupancy.refusal("low", 0)]).toEqual([3, null]);
  });

  it("makes way for a higher priority that was just refused", () => {
    const occupancy = occupancyOf([high, low]);
    fill(occupancy, "high");
    expect(occupancy.refusal("high", 1000)).toBe("class-limit");
    occupancy.left("high");
    expect([occupancy.refusal("low", 1500), occupancy.refusal("low", 2000)]).toEqual(["priority", null]);
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
    expect([fill(occupancy, "low"), occupancy.refusal("low", 0)]).toEqual([18, "gateway-limit"]);
    expect([fill(occupancy, "high"), occupancy.refusal("high", 0)]).toEqual([2, "gateway-limit"]);
  });

  it("holds the hard limit of the engines", () => {
    const occupancy = occupancyOf([classOf("chat", { engineLimit: 6 })]);
    expect([fill(occupancy, "chat"), occupancy.refusal("chat", 0)]).toEqual([6, "engine-limit"]);
  });

  it("keeps what is held over a newer snapshot, and lets in a class that no snapshot names", () => {
    const occupancy = occupancyOf([low]);
    fill(occupancy, "low", 5);
    occupancy.adopt([classOf("low", { streamLimit: 5 })], 100);
    expect([occupancy.held("low"), occupancy.refusal("low", 0), occupancy.refusal("unknown", 0)]).toEqual([
      5,
      "class-limit",
      null,
    ]);
  });
});
