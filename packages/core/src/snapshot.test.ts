import { describe, expect, it } from "vitest";
import { GuidevaneError } from "./errors.ts";
import {
  type ClusterSnapshot,
  checkClusterSnapshot,
  decodeRing,
  encodeRing,
  isNewer,
  parseClusterSnapshot,
  type SnapshotEngine,
  snapshotTag,
} from "./snapshot.ts";

const engine: SnapshotEngine = {
  url: "http://10.0.0.1:8000",
  kind: "vllm",
  region: "r",
  models: ["m"],
  capabilities: null,
  residency: null,
  compute: null,
  maxContextTokens: null,
  replicas: 1,
  adminState: "active",
  health: { path: "/health", pathIsDefault: true, port: null, intervalMs: 2000 },
  rttMs: 2,
  plannedFactor: 1,
  plannedReady: 1,
  loadWps: 10,
  capacityWps: 100,
  priceMs: 5,
  worthMs: 1,
};

const bound = { objectiveMs: 10, lowerBoundMs: 9.9, gapMs: 0.1, gap: 0.01 };

function good(): ClusterSnapshot {
  return {
    version: 3,
    epoch: 1,
    madeAt: "2026-01-01T00:00:00.000Z",
    cluster: "c",
    gateways: 1,
    engines: { a: engine, b: engine },
    classes: {
      chat: {
        model: "m",
        priority: 0,
        work: 1,
        promptTokens: 512,
        outputTokens: 256,
        firstTokenMs: null,
        needs: { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null },
      },
    },
    cells: [
      {
        cluster: "c",
        class: "chat",
        demandRps: 10,
        work: 1,
        engines: ["a", "b"],
        weights: [0.75, 0.25],
        expectedMs: [100, 120],
        addends: [
          [2, 90, 4, 0, 0],
          [2, 90, 4, 0, 0],
        ],
        reserves: [],
        shed: 0,
        priceMs: 96,
        streamLimit: 40,
        ring: encodeRing(Uint16Array.from([0, 0, 0, 1]), 2),
      },
    ],
    certificate: { ...bound, churnFree: bound, expectedLatencyMs: 105 },
  };
}

function problemsOf(change: (snapshot: ClusterSnapshot) => void): string[] {
  const snapshot = good();
  change(snapshot);
  try {
    parseClusterSnapshot(JSON.stringify(snapshot));
  } catch (error) {
    if (GuidevaneError.is(error) && error.code === "bad_snapshot")
      return error.problems.map(({ path, value }) => `${path} ${value}`);
    throw error;
  }
  return [];
}

describe("a snapshot", () => {
  it("comes back from its JSON as it was", () => {
    expect(parseClusterSnapshot(JSON.stringify(good()))).toEqual(good());
  });

  it("keeps routing by a version that knows more keys than this one", () => {
    const later = { ...good(), somethingNew: 1 };
    expect(parseClusterSnapshot(JSON.stringify(later))).toEqual(good());
  });

  it.each<[string, (snapshot: ClusterSnapshot) => void, string]>([
    [
      "weights that do not sum to 1",
      (s) => {
        s.cells[0]!.weights = [0.5, 0.25];
      },
      "cells.0.weights 0.75",
    ],
    [
      "a negative weight",
      (s) => {
        s.cells[0]!.weights = [1.25, -0.25];
      },
      "cells.0.weights.0 1.25",
    ],
    [
      "too few weights",
      (s) => {
        s.cells[0]!.weights = [1];
      },
      "cells.0.weights 1",
    ],
    [
      "an engine that is not in it",
      (s) => {
        s.cells[0]!.engines = ["a", "ghost"];
      },
      'cells.0.engines "ghost"',
    ],
    [
      "a reserve that is not in it",
      (s) => {
        s.cells[0]!.reserves = [{ engine: "ghost", spareWps: 1, reducedCostMs: 1 }];
      },
      'cells.0.engines "ghost"',
    ],
    [
      "a class that is not in it",
      (s) => {
        s.cells[0]!.class = "talk";
      },
      'cells.0.class "talk"',
    ],
    [
      "a cell of another cluster",
      (s) => {
        s.cells[0]!.cluster = "d";
      },
      'cells.0.cluster "d"',
    ],
    [
      "a ring of three slots",
      (s) => {
        s.cells[0]!.ring = encodeRing(Uint16Array.from([0, 1, 1]), 2);
      },
      "cells.0.ring 3",
    ],
    [
      "a ring that points outside its engines",
      (s) => {
        s.cells[0]!.ring = encodeRing(Uint16Array.from([0, 2]), 2);
      },
      "cells.0.ring 2",
    ],
    [
      "a version that is no number",
      (s) => {
        s.version = Number.NaN;
      },
      "version null",
    ],
  ])("is refused for %s", (_what, change, expected) => {
    expect(problemsOf(change)).toContain(expected);
  });

  it("is refused when it is not JSON", () => {
    expect(() => parseClusterSnapshot("{")).toThrow(expect.objectContaining({ code: "bad_snapshot" }));
  });

  it("may have a cell without a ring", () => {
    const snapshot = good();
    snapshot.cells[0]!.ring = "";
    expect(checkClusterSnapshot(snapshot)).toEqual([]);
  });
});

describe("a ring's text", () => {
  it.each([
    [2, 64],
    [256, 4096],
    [257, 4096],
    [1000, 1024],
  ])("comes back as it was for %i engines and %i slots", (engines, slots) => {
    const owners = Uint16Array.from({ length: slots }, (_, slot) => (slot * 7919) % engines);
    const text = encodeRing(owners, engines);
    const ids = Array.from({ length: engines }, (_, at) => `e${at}`);
    expect(decodeRing({ ring: text, engines: ids })).toEqual(owners);
    // One byte a slot up to 256 engines, two above.
    expect(Buffer.from(text, "base64").length).toBe(engines <= 256 ? slots : slots * 2);
  });
});

describe("the order of snapshots", () => {
  it("goes by epoch, then by version", () => {
    expect(isNewer({ epoch: 1, version: 4 }, { epoch: 1, version: 3 })).toBe(true);
    expect(isNewer({ epoch: 1, version: 3 }, { epoch: 1, version: 3 })).toBe(false);
    expect(isNewer({ epoch: 2, version: 1 }, { epoch: 1, version: 9 })).toBe(true);
    expect(isNewer({ epoch: 1, version: 9 }, { epoch: 2, version: 1 })).toBe(false);
  });

  it("shows in the tag", () => {
    expect(snapshotTag({ epoch: 7, version: 42 })).toBe("7-42");
  });
});
