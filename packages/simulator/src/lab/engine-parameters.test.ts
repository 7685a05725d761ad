import { readFileSync } from "node:fs";
import { GENERIC_PROFILE, type Profile, parseProfile, seededRandom, valueAt } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { BatchingEngine } from "./batching-engine.ts";
import { engineParameters } from "./engine-parameters.ts";
import { loadMeans } from "./load-means.ts";

const memory = { blockTokens: 16, kvTokens: Number.POSITIVE_INFINITY };
/** TTFT and TBOT that bend sharply: what `npm start` runs, at the capacities of two cores and of four. */
const tour = read("fleets/three-clusters/profile.yaml");
const measured = read("profiles/llama-3.1-70b-fp8-4xh100.yaml");

function read(path: string): Profile {
  return parseProfile(readFileSync(new URL(`../../../cli/${path}`, import.meta.url), "utf8"), path);
}

/** Poisson arrivals of reference requests at ρ of the capacity; means without those that met the engine empty. */
function offer(profile: Profile, capacityWps: number, rho: number, count: number) {
  const engine = new BatchingEngine(engineParameters(profile, capacityWps, memory));
  const random = seededRandom(3);
  const arrivedMs = new Float64Array(count);
  const firstMs = new Float64Array(count);
  let waitedMs = 0;
  let decodedMs = 0;
  let ended = 0;
  engine.tell({
    began() {},
    firstToken: (request, atMs) => {
      firstMs[request] = atMs;
    },
    finished: (request, atMs) => {
      if (request < count / 20) return;
      waitedMs += firstMs[request]! - arrivedMs[request]!;
      decodedMs += atMs - firstMs[request]!;
      ended += 1;
    },
  });
  const { promptTokens, outputTokens } = profile.reference;
  let nowMs = 0;
  for (let request = 0; request < count; request++) {
    nowMs -= (Math.log(1 - random()) * 1000) / (rho * capacityWps);
    for (let dueMs = engine.nextMs(); dueMs <= nowMs; dueMs = engine.nextMs()) engine.run(dueMs);
    arrivedMs[request] = nowMs;
    engine.take(nowMs, request, {
      ids: NO_BLOCKS,
      promptTokens,
      outputTokens,
      from: 0,
      promptBlocks: 0,
      afterBlocks: 0,
    });
  }
  return { ttftMs: waitedMs / ended, tbotMs: decodedMs / ended / outputTokens };
}

const NO_BLOCKS = new Int32Array(0);
const error = (value: number, expected: number) => Math.abs(value / expected - 1);

describe.each([
  { name: "the generic profile", profile: GENERIC_PROFILE, capacityWps: 10, ttft: 0.12, tbot: 0.04 },
  { name: "a measured one", profile: measured, capacityWps: measured.capacityWps, ttft: 0.13, tbot: 0.08 },
  { name: "the tour's on two cores", profile: tour, capacityWps: 48, ttft: 0.22, tbot: 0.1 },
  { name: "the tour's, all of it", profile: tour, capacityWps: 100, ttft: 0.2, tbot: 0.12 },
  {
    name: "the tour's at a rate at which prompts can't be read one by one",
    profile: tour,
    capacityWps: 400,
    ttft: 0.18,
    tbot: 0.1,
  },
])("an engine made from $name", ({ profile, capacityWps, ttft, tbot }) => {
  it.each([0.3, 0.5, 0.7, 0.8, 0.9])("has its mean TTFT and TBOT at %f of its load", (rho) => {
    const means = offer(profile, capacityWps, rho, 40_000);
    expect(error(means.ttftMs, valueAt(profile.ttftMs, rho))).toBeLessThan(ttft);
    expect(error(means.tbotMs, valueAt(profile.tbotMs, rho))).toBeLessThan(tbot);
  });

  it("does no more work than its capacity, however much is offered", () => {
    const engine = new BatchingEngine(engineParameters(profile, capacityWps, memory));
    const { promptTokens, outputTokens } = profile.reference;
    const count = 10_000;
    for (let request = 0; request < count; request++)
      engine.take(0, request, { ids: NO_BLOCKS, promptTokens, outputTokens, from: 0, promptBlocks: 0, afterBlocks: 0 });
    let endMs = 0;
    for (let dueMs = engine.nextMs(); dueMs < Number.POSITIVE_INFINITY; dueMs = engine.nextMs()) {
      engine.run(dueMs);
      endMs = dueMs;
    }
    expect(count / (endMs / 1000) / capacityWps).toBeGreaterThan(0.92);
    expect(count / (endMs / 1000) / capacityWps).toBeLessThan(1.02);
  });
});

describe("the means of a mechanism under load", () => {
  it.each([0.3, 0.6, 0.8, 0.9])("are what a simulation of it gives at %f of the load", (rho) => {
    const parameters = engineParameters(measured, measured.capacityWps, memory);
    const { promptTokens, outputTokens } = measured.reference;
    const readMs = parameters.prefill.fixedMs + parameters.prefill.msPerTok * promptTokens;
    const known = loadMeans(parameters, readMs, outputTokens, (rho * measured.capacityWps) / 1000);
    const means = offer(measured, measured.capacityWps, rho, 40_000);
    expect(error(known.tbotMs, means.tbotMs)).toBeLessThan(0.05);
    expect(error(known.ttftMs, means.ttftMs)).toBeLessThan(0.08);
  });
});

describe("an engine made from a flat profile", () => {
  it("answers in its times at any load below its capacity", () => {
    const flat: Profile = { ...GENERIC_PROFILE, prefillMsPerTok: 0, ttftMs: [[0, 20]], tbotMs: [[0, 5]] };
    const means = offer(flat, 10, 0.5, 5000);
    expect(error(means.tbotMs, 5)).toBeLessThan(0.02);
    expect(means.ttftMs).toBeLessThan(25);
  });

  it("is held to its capacity alone where the profile says that nothing takes time", () => {
    const none: Profile = { ...GENERIC_PROFILE, prefillMsPerTok: 0, ttftMs: [[0, 0]], tbotMs: [[0, 0]] };
    const { ttftMs, tbotMs } = offer(none, 10, 0.5, 2000);
    expect(ttftMs + none.reference.outputTokens * tbotMs).toBeLessThan(1000 / 10 / (1 - 0.5) + 1);
  });
});
