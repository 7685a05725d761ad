import { describe, expect, it } from "vitest";
import { twoRegions } from "../lab.fixture.ts";
import { type LabRun, runLab } from "../lab.ts";
import type { PolicyDefinition } from "../policy.ts";
import { figuresOf } from "../report/figures.ts";
import { syntheticWorkload } from "../synthetic.ts";
import { cacheOracle, evenCacheOracle } from "./cache-oracle.ts";
import { guidevaneWith } from "./guidevane.ts";

async function run(policy: PolicyDefinition): Promise<LabRun> {
  const fleet = await twoRegions;
  const workload = syntheticWorkload({ fleet, seed: 2, seconds: 120, load: 0.5, turns: 6, thinkMs: 2000 });
  return runLab({ fleet, workload, policy, seed: 2, gatewaysPerCluster: 1, kvTokens: 1_000_000 });
}

const hits = async (policy: PolicyDefinition): Promise<number> =>
  figuresOf(await run(policy), policy, { ttftMs: 1000, tbotMs: 40 }).hitPart;

describe("oracles of the caches", () => {
  it("find more than the same weights without any memory, where the plan moves keys", async () => {
    const blind = await hits(guidevaneWith("blind", { placement: "home", memory: false }));
    for (const oracle of [cacheOracle, evenCacheOracle]) expect(await hits(oracle)).toBeGreaterThan(blind);
  });
});
