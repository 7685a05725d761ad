import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sentTo } from "./lab.fixture.ts";
import { type LabRun, runLab } from "./lab.ts";
import type { Failure } from "./lab-options.ts";
import { guidevaneWith } from "./policies/guidevane.ts";
import { recordedPrompts, tracesFolder } from "./recorded-prompts.fixture.ts";

const TRACE = "mooncake_conversation.jsonl.gz";
const hasData = existsSync(join(tracesFolder, TRACE));
/** GUIDEVANE_PENALTY_SEEDS makes it the long form: 14 engine-hours of the gateways a seed. */
const SEEDS = Array.from({ length: Number(process.env.GUIDEVANE_PENALTY_SEEDS ?? 2) }, (_, seed) => seed + 1);

/** 12,400 tokens a prompt, few requests a second, two gateways for each of the lab's four regions. */
async function run(penalties: boolean, seed: number, failures: readonly Failure[] = []): Promise<LabRun> {
  const { workload, fleet } = await recordedPrompts(TRACE, 2, seed);
  const policy = guidevaneWith("guards", { penalties });
  return runLab({ fleet, workload, policy, seed, gatewaysPerCluster: 2, kvTokens: 1_000_000, failures });
}

describe.skipIf(!hasData)(
  `penalties where prompts are long and of all lengths${hasData ? "" : " (skipped: no data; set GUIDEVANE_DATA)"}`,
  { timeout: 120_000 },
  () => {
    it.each(SEEDS)("leave healthy engines alone, behind whose longest prompts others wait (seed %i)", async (seed) => {
      const [judged, unjudged] = [await run(true, seed), await run(false, seed)];
      expect(Buffer.from(judged.tally.engine.buffer).equals(Buffer.from(unjudged.tally.engine.buffer))).toBe(true);
    });

    it("take most of its requests from an engine that turns three times as slow", async () => {
      const slow: Failure = { kind: "slowdown", engine: "usw-h100", factor: 3, atMs: 300_000, forMs: 300_000 };
      const sent = (lab: LabRun): number => sentTo(lab, "usw-h100", 400_000, 600_000);
      expect(sent(await run(true, 1, [slow]))).toBeLessThan(0.5 * sent(await run(false, 1, [slow])));
    });
  },
);
