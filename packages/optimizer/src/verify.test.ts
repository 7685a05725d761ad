import { encodeRing, type Publication, type SnapshotCell } from "@guidevane/core";
import { beforeAll, describe, expect, it } from "vitest";
import { inputsOf, threeClusters } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import type { StoredProblem } from "./stored-problem.ts";
import { verifyCertificate } from "./verify.ts";

/** Readonly taken off: the tests break what a plan would never write. */
interface Breakable {
  clusters: Map<string, Snapshot>;
  problem: StoredProblem;
}
type Snapshot = Publication["clusters"] extends ReadonlyMap<string, infer S> ? S : never;

let whole: Publication;
beforeAll(async () => {
  whole = plan(inputsOf(await threeClusters()), null, null, { deadlineMs: null }).publication!;
});

const broken: readonly { what: string; says: string; by: (publication: Breakable) => void }[] = [
  {
    what: "weights that do not sum to 1",
    says: "must sum to 1",
    by: (each) => {
      cell(each, "b").weights[0]! -= 0.1;
    },
  },
  {
    what: "a ring that is not its weights",
    says: "its weight asks for",
    by: (each) => {
      cell(each, "b").weights = cell(each, "b").weights.toReversed();
    },
  },
  {
    what: "a ring of three slots",
    says: "needs a power of two slots",
    by: (each) => {
      cell(each, "b").ring = encodeRing(Uint16Array.of(0, 0, 1), 2);
    },
  },
  {
    what: "a cell without a ring",
    says: "no ring",
    by: (each) => {
      cell(each, "b").ring = "";
    },
  },
  {
    what: "an engine past its capacity",
    says: "units/s planned on",
    by: (each) => {
      Object.assign(cell(each, "b"), { engines: ["engine-b"], weights: [1], expectedMs: [400] });
      cell(each, "b").addends.length = 1;
      cell(each, "b").ring = encodeRing(new Uint16Array(4096), 1);
    },
  },
  {
    what: "a cell that the problem lacks",
    says: "not in the problem",
    by: (each) => {
      each.problem.cells[1]!.class = "other";
    },
  },
  {
    what: "a cell that the snapshot lacks",
    says: "the snapshot lacks it",
    by: (each) => void each.clusters.get("b")!.cells.pop(),
  },
  {
    what: "another demand",
    says: "is not the problem's",
    by: (each) => {
      cell(each, "b").demandRps += 1;
    },
  },
  {
    what: "addends that do not sum up",
    says: "the addends of",
    by: (each) => {
      cell(each, "b").addends[0]![2] += 5;
    },
  },
  {
    what: "a reserve that has a weight",
    says: "reserve engine-b has a weight",
    by: (each) => void cell(each, "b").reserves.push({ engine: "engine-b", spareWps: 1, reducedCostMs: 0 }),
  },
  {
    what: "a load that is not planned",
    says: "loadWps of engine-a",
    by: (each) => {
      each.clusters.get("a")!.engines["engine-a"]!.loadWps -= 1;
    },
  },
  {
    what: "a price that is not the problem's",
    says: "priceMs of engine-a",
    by: (each) => {
      each.clusters.get("a")!.engines["engine-a"]!.priceMs += 1;
    },
  },
  {
    what: "a bound better than the prices prove",
    says: "certificate.lowerBoundMs",
    by: (each) => {
      each.clusters.get("c")!.certificate.lowerBoundMs += 1e-3;
    },
  },
  {
    what: "a cost lower than the rings'",
    says: "certificate.objectiveMs",
    by: (each) => {
      each.clusters.get("c")!.certificate.objectiveMs -= 1e-3;
    },
  },
  {
    what: "a gap that is not the difference",
    says: "certificate.gap ",
    by: (each) => {
      each.clusters.get("c")!.certificate.gap += 1e-5;
    },
  },
  { what: "a problem of another shape", says: "problem: ", by: (each) => void each.problem.arcCostMs.pop() },
  {
    what: "a concave curve",
    says: "not convex",
    by: (each) => {
      each.problem.knotMs[1] = 5000;
    },
  },
];

describe("verifyCertificate", () => {
  it("finds nothing wrong with a plan", () => {
    expect(verifyCertificate(whole)).toEqual([]);
  });

  it.each(broken)("finds $what", ({ says, by }) => {
    const copy = structuredClone(whole) as unknown as Breakable;
    by(copy);
    expect(verifyCertificate(copy).join("\n")).toContain(says);
  });

  it("answers a problem that is none, rather than throwing", () => {
    expect(verifyCertificate({ ...whole, problem: "lost" })[0]).toContain("problem: ");
  });
});

function cell(each: Breakable, cluster: string): SnapshotCell {
  return each.clusters.get(cluster)!.cells[0]!;
}
