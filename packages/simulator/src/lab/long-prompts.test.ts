import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { loadFleet } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { describedBy } from "./described-by.ts";
import { type LabRun, runLab } from "./lab.ts";
import type { Failure } from "./lab-options.ts";
import { guidevaneWith } from "./policies/guidevane.ts";
import { readTrace } from "./traces/index.ts";

const root = join(import.meta.dirname, "../../../..");
const data = process.env.GUIDEVANE_DATA ?? join(root, "../shared/data");
const trace = join(data, "traces/mooncake_conversation.jsonl.gz");
const hasData = existsSync(trace);
/** GUIDEVANE_PENALTY_SEEDS makes it the long form: 14 engine-hours of the gateways a seed. */
const SEEDS = Array.from({ length: Number(process.env.GUIDEVANE_PENALTY_SEEDS ?? 2) }, (_, seed) => seed + 1);

/** 12,400 tokens a prompt, few requests a second, two gateways for each of the lab's four regions. */
async function run(penalties: boolean, seed: number, failures: readonly Failure[] = []): Promise<LabRun> {
  const folder = join(root, "packages/cli/fleets/lab");
  const read = (path: string) => readFile(resolve(folder, path), "utf8");
  const lab = await loadFleet(await read("fleet.yaml"), "lab", read);
  const workload = readTrace(gunzipSync(readFileSync(trace)).toString("utf8"), {
    ...{
      name: "mooncake",
      requestClass: "chat",
      seed,
      speed: 2,
      seconds: 700,
      settleMs: 200_000,
      model: null,
      scale: 1,
    },
    origins: [...lab.demandRps].map(([cluster, byClass]) => ({
      cluster,
      part: [...byClass.values()].reduce((sum, rps) => sum + rps, 0),
      shiftHours: 0,
    })),
    size: { promptTokens: 512, outputTokens: 256 },
  });
  const fleet = describedBy(lab, workload);
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
      const sent = ({ tally, fleet: { engines } }: LabRun): number => {
        const place = engines.findIndex(({ id }) => id === "usw-h100");
        const late = [...tally.arrivedMs.keys()].filter(
          (row) => tally.arrivedMs[row]! >= 400_000 && tally.arrivedMs[row]! < 600_000,
        );
        return late.filter((row) => tally.engine[row] === place).length;
      };
      expect(sent(await run(true, 1, [slow]))).toBeLessThan(0.5 * sent(await run(false, 1, [slow])));
    });
  },
);
