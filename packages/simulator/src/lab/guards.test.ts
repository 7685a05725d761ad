import type { Fleet } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import type { GuidevaneParts } from "./guidevane/parts.ts";
import { sentTo, twoRegions } from "./lab.fixture.ts";
import { type LabRun, runLab } from "./lab.ts";
import type { Failure } from "./lab-options.ts";
import { guidevaneWith } from "./policies/guidevane.ts";
import { syntheticWorkload } from "./synthetic.ts";

const CAPACITY_WPS = 25;

/** Its demand as the file says it is the load offered, so that limits which read the plan's loads read true ones. */
async function atLoad(load: number): Promise<Fleet> {
  const fleet = await twoRegions;
  const [east, west] = fleet.clusters.keys();
  const rps = load * CAPACITY_WPS;
  return {
    ...fleet,
    demandRps: new Map([
      [east!, new Map([["chat", (2 / 3) * rps]])],
      [west!, new Map([["chat", rps / 3]])],
    ]),
  };
}

async function run(load: number, parts: Partial<GuidevaneParts>, failures: readonly Failure[] = []): Promise<LabRun> {
  const fleet = await atLoad(load);
  const workload = syntheticWorkload({ fleet, seed: 5, seconds: 80, turns: 3, thinkMs: 2000 });
  return runLab({ fleet, workload, policy: guidevaneWith("guards", parts), seed: 5, gatewaysPerCluster: 1, failures });
}

describe("penalties in the lab", () => {
  it.each([0.6, 0.8])("leave healthy engines alone at a load of %d, queues and all", async (load) => {
    const [judged, unjudged] = [await run(load, {}), await run(load, { penalties: false })];
    expect(Buffer.from(judged.tally.engine.buffer).equals(Buffer.from(unjudged.tally.engine.buffer))).toBe(true);
  });

  it("take most of its requests from an engine that turns three times as slow, where the others have room", async () => {
    const slow: Failure = { kind: "slowdown", engine: "west-1", factor: 3, atMs: 60_000, forMs: 60_000 };
    const sent = (lab: LabRun): number => sentTo(lab, "west-1", 90_000, 120_000);
    const [judged, unjudged] = [await run(0.3, {}, [slow]), await run(0.3, { penalties: false }, [slow])];
    expect(sent(judged)).toBeLessThan(0.5 * sent(unjudged));
  });
});
