import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import { type Fleet, loadFleet } from "@guidevane/core";
import { describedBy } from "./described-by.ts";
import { readTrace } from "./traces/index.ts";
import type { Workload } from "./workload.ts";

const root = join(import.meta.dirname, "../../../..");

/** Where the recorded traces are, if they are there. */
export const tracesFolder = join(process.env.GUIDEVANE_DATA ?? join(root, "../shared/data"), "traces");

/** 700 s of a trace, the first 200 of which fill the caches, on the lab's own fleet of nine engines in four regions. */
export async function recordedPrompts(
  file: string,
  speed: number,
  seed: number,
): Promise<{ readonly workload: Workload; readonly fleet: Fleet }> {
  const folder = join(root, "packages/cli/fleets/lab");
  const read = (path: string) => readFile(resolve(folder, path), "utf8");
  const lab = await loadFleet(await read("fleet.yaml"), "lab", read);
  const workload = readTrace(gunzipSync(readFileSync(join(tracesFolder, file))).toString("utf8"), {
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
