import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { describedBy } from "../described-by.ts";
import type { GuidevaneParts } from "../guidevane/parts.ts";
import { twoRegions } from "../lab.fixture.ts";
import { runLab } from "../lab.ts";
import { guidevaneWith } from "../policies/guidevane.ts";
import { figuresOf } from "../report/figures.ts";
import { readTrace } from "./index.ts";

const data = process.env.GUIDEVANE_DATA ?? join(import.meta.dirname, "../../../../../../shared/data");
const hasData = existsSync(join(data, "traces"));

const TRACES = [
  { file: "mooncake_conversation.jsonl.gz", speed: 0.5, seconds: 700 },
  { file: "agentic_coding_sessions.jsonl.gz", speed: 0.05, seconds: 1000 },
];

describe.skipIf(!hasData)(`real prompts${hasData ? "" : " (skipped: no data; set GUIDEVANE_DATA)"}`, () => {
  it.each(TRACES)(
    "find at least 0.95 of the prefix blocks that they find where nothing but the ring decides: $file",
    {
      timeout: 120_000,
    },
    async ({ file, speed, seconds }) => {
      const text = gunzipSync(readFileSync(join(data, "traces", file))).toString("utf8");
      const lab = await twoRegions;
      const workload = readTrace(text, {
        ...{ name: file, requestClass: "chat", seed: 1, speed, seconds, settleMs: 200_000, model: null, scale: 1 },
        origins: [...lab.clusters.keys()].map((cluster) => ({ cluster, part: 1, shiftHours: 0 })),
        size: { promptTokens: 512, outputTokens: 128 },
      });
      const fleet = describedBy(lab, workload);
      const found = (parts: Partial<GuidevaneParts>): number => {
        const policy = guidevaneWith("found", parts);
        const run = runLab({ fleet, workload, policy, seed: 1, gatewaysPerCluster: 1, kvTokens: 1_000_000 });
        return figuresOf(run, policy, { ttftMs: 1000, tbotMs: 40 }).hitPart;
      };
      const ours = found({});
      expect(ours).toBeGreaterThan(0.1);
      expect(ours / found({ placement: "home", bound: false })).toBeGreaterThanOrEqual(0.95);
    },
  );
});
