import type { Fleet } from "@guidevane/core";
import { beforeAll, describe, expect, it } from "vitest";
import type { GuidevaneParts } from "./guidevane/parts.ts";
import { twoRegions } from "./lab.fixture.ts";
import { runLab } from "./lab.ts";
import { guidevaneWith } from "./policies/guidevane.ts";
import type { PolicyDefinition } from "./policy.ts";
import { figuresOf, type PolicyFigures } from "./report/figures.ts";
import { syntheticWorkload } from "./synthetic.ts";

const LOAD = 0.8;

const SIZES_WPS = [10, 10, 8, 8, 6, 6, 5];

/** One cluster, engines of four sizes; the plan knows the true demand. */
async function mixedEngines(): Promise<Fleet> {
  const fleet = await twoRegions;
  const one = fleet.engines.get("east-1")!;
  const engines = SIZES_WPS.map((capacityWps, at) => ({ ...one, id: `engine-${at}`, capacityWps }));
  const rps = LOAD * SIZES_WPS.reduce((sum, each) => sum + each, 0);
  return {
    ...fleet,
    clusters: new Map([...fleet.clusters].slice(0, 1)),
    engines: new Map(engines.map((each) => [each.id, each])),
    demandRps: new Map([["east", new Map([["chat", rps]])]]),
  };
}

interface Placed {
  readonly figures: PolicyFigures;
  /** Half the sum over engines of |part of the requests − weight|. */
  readonly off: number;
}

async function placed(parts: Partial<GuidevaneParts>): Promise<Placed> {
  const fleet = await mixedEngines();
  const workload = syntheticWorkload({ fleet, seed: 3, seconds: 400, turns: 6, thinkMs: 5000, hotPart: 0.05 });
  const weights = new Float64Array(fleet.engines.size);
  const policy = guidevaneWith("placed", parts);
  const watched: PolicyDefinition = {
    ...policy,
    create: (world, values) => policy.create({ ...world, published: (_, each) => weights.set(each) }, values),
  };
  // Weights that stand still: what moves is moved by the selector alone.
  const failures = [{ kind: "control-down", atMs: 1000, forMs: 1e9 }] as const;
  const run = runLab({ fleet, workload, policy: watched, seed: 3, gatewaysPerCluster: 1, failures });
  const { engine, arrivedMs } = run.tally;
  const rows = [...engine.keys()].filter((row) => engine[row]! >= 0 && arrivedMs[row]! >= workload.settleMs);
  const part = (e: number): number => rows.filter((row) => engine[row] === e).length / rows.length;
  const off = weights.reduce((sum, weight, e) => sum + Math.abs(part(e) - weight) / 2, 0);
  return { figures: figuresOf(run, policy, { ttftMs: 1000, tbotMs: 40 }), off };
}

describe("first requests by two choices, at 80 % of mixed engines with hot conversations", () => {
  let twoChoices: Placed;
  let hashOnly: Placed;
  let boundOnly: Placed;
  beforeAll(async () => {
    twoChoices = await placed({});
    hashOnly = await placed({ placement: "home", bound: false });
    boundOnly = await placed({ placement: "home", memory: false });
  });

  it("has 99 % of follow-ups at the engine that has them, more than a bound that remembers nothing", () => {
    expect(twoChoices.figures.movedPart).toBeLessThanOrEqual(0.01);
    expect(boundOnly.figures.movedPart).toBeGreaterThan(twoChoices.figures.movedPart);
  });

  it("keeps shares within 2 % of the weights, closer than hashing does", () => {
    expect(twoChoices.off).toBeLessThanOrEqual(0.02);
    expect(twoChoices.off).toBeLessThan(hashOnly.off / 2);
  });

  it("has a shorter tail than hashing alone, with the bound or without", () => {
    const { e2e, ttft } = twoChoices.figures;
    for (const { figures } of [hashOnly, boundOnly]) {
      expect(e2e!.p99Ms).toBeLessThan(figures.e2e!.p99Ms);
      expect(ttft!.p99Ms).toBeLessThan(figures.ttft!.p99Ms);
    }
  });
});
