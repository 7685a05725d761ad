import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { loadFleet } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { describedBy } from "./described-by.ts";
import { runLab } from "./lab.ts";
import { cacheOracle, evenCacheOracle } from "./policies/cache-oracle.ts";
import { guidevane } from "./policies/guidevane.ts";
import type { PolicyDefinition } from "./policy.ts";
import { figuresOf } from "./report/figures.ts";
import { readTrace } from "./traces/index.ts";

const root = join(import.meta.dirname, "../../../..");
const data = process.env.GUIDEVANE_DATA ?? join(root, "../shared/data");
const hasData = existsSync(join(data, "traces"));
const SEEDS = [1, 2];

/** As long as the first minutes fill the caches; the fleet is the lab's own, of nine engines. */
async function prompts(file: string, speed: number, seed: number) {
  const folder = join(root, "packages/cli/fleets/lab");
  const read = (path: string) => readFile(resolve(folder, path), "utf8");
  const lab = await loadFleet(await read("fleet.yaml"), "lab", read);
  const workload = readTrace(gunzipSync(readFileSync(join(data, "traces", file))).toString("utf8"), {
    ...{ name: file, requestClass: "chat", seed, speed, seconds: 700, settleMs: 200_000, model: null, scale: 1 },
    origins: [...lab.demandRps].map(([cluster, byClass]) => ({
      cluster,
      part: [...byClass.values()].reduce((sum, rps) => sum + rps, 0),
      shiftHours: 0,
    })),
    size: { promptTokens: 512, outputTokens: 256 },
  });
  return { workload, fleet: describedBy(lab, workload) };
}

/** Of what is found, how much Guidevane finds of what the better of two oracles does, all seeds together. */
async function ratio(file: string, speed: number, gatewaysPerCluster: number): Promise<number> {
  const policies: readonly PolicyDefinition[] = [guidevane, cacheOracle, evenCacheOracle];
  const found = policies.map(() => 0);
  for (const seed of SEEDS) {
    const { workload, fleet } = await prompts(file, speed, seed);
    for (const [at, policy] of policies.entries()) {
      const run = runLab({ fleet, workload, policy, seed, gatewaysPerCluster, kvTokens: 1_000_000 });
      const figures = figuresOf(run, policy, { ttftMs: 1000, tbotMs: 40 });
      // An oracle that heaps prompts on the engines that hold their beginnings is now and then sent away by admission.
      expect(figures.shedPart + figures.failedPart).toBeLessThanOrEqual(at === 0 ? 0 : 0.01);
      found[at]! += figures.hitPart / SEEDS.length;
    }
  }
  const [ours, ...theirs] = found;
  expect(ours).toBeGreaterThan(0.2);
  return ours! / Math.max(...theirs);
}

describe.skipIf(!hasData)(
  `prefix blocks found, by the same weights under the same bound${hasData ? "" : " (skipped: no data; set GUIDEVANE_DATA)"}`,
  { timeout: 240_000 },
  () => {
    it.each([
      { file: "mooncake_conversation.jsonl.gz", speed: 2, gateways: 1, least: 0.95 },
      { file: "agentic_coding_sessions.jsonl.gz", speed: 0.25, gateways: 1, least: 0.95 },
      // 0.96 over four seeds of 1,200 s (docs/findings.md, `prefixes`), 0.95 within a thousandth over these two.
      { file: "mooncake_conversation.jsonl.gz", speed: 2, gateways: 2, least: 0.94 },
    ])(
      "are $least of what gateways that see into every cache find: $file, gateways a cluster: $gateways",
      async ({ file, speed, gateways, least }) => {
        expect(await ratio(file, speed, gateways)).toBeGreaterThanOrEqual(least);
      },
    );
  },
);
