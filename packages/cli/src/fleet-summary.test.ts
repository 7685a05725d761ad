import { loadFleet } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { summariseFleet } from "./fleet-summary.ts";

const profile = (name: string, prefillPerKtok: number, decodePerKtok: number, prompt = 1000, output = 1000) => `
profile: ${name}
sku: ${name}-sku
reference: { promptTokens: ${prompt}, outputTokens: ${output} }
work: { prefillPerKtok: ${prefillPerKtok}, decodePerKtok: ${decodePerKtok} }
prefillMsPerTok: 0.1
loop: open
capacityWps: 10
ttftMs: [[0, 40]]
tbotMs: [[0, 10]]
`;

const FLEET = `
clusters: { a: { region: r } }
engines:
  one: { url: "http://127.0.0.1:1", region: r, models: [m], profile: one, replicas: 3 }
  two: { url: "http://127.0.0.1:2", region: far, models: [m], profile: two }
  bare: { url: "http://127.0.0.1:3", region: r, models: [m], capacityWps: 5 }
classes: { chat: { model: m } }
profiles: { one: { file: one.yaml }, two: { file: two.yaml } }
demandRps: { a: { chat: 7 } }
`;

async function summary(two: string, one = profile("one", 0.36, 0.64)) {
  const files: Record<string, string> = { "one.yaml": one, "two.yaml": two };
  return summariseFleet(await loadFleet(FLEET, "fleet.yaml", async (path) => files[path]!));
}

describe("what fleet check says", () => {
  it("is how far a SKU's prefill:decode ratio is from its model's first profile", async () => {
    const { ratios } = await summary(profile("two", 0.55, 0.45));
    expect(ratios).toHaveLength(2);
    expect(ratios[0]).toMatchObject({ model: "m", profile: "one", sku: "one-sku", off: 0 });
    // 55:45 against 36:64.
    expect(ratios[1]!.off).toBeCloseTo(55 / 45 / (36 / 64) - 1, 12);
    expect([ratios[1]!.prefillPart, ratios[1]!.modelPrefillPart]).toEqual([0.55, 0.36]);
  });

  it("is nothing between profiles without prefill work, and no number between one of them and others", async () => {
    const without = await summary(profile("two", 0, 1), profile("one", 0, 1));
    expect(without.ratios.map(({ off }) => off)).toEqual([0, 0]);
    const first = await summary(profile("two", 0.36, 0.64), profile("one", 0, 1));
    expect(first.ratios.map(({ off }) => off)).toEqual([0, null]);
  });

  it("has the capacity of all replicas, and the generic curve as none", async () => {
    const { engines } = await summary(profile("two", 0.36, 0.64));
    expect(engines.map((each) => [each.id, each.profile, each.capacityWps])).toEqual([
      ["one", "one", 30],
      ["two", "two", 10],
      ["bare", null, 5],
    ]);
  });

  it("warns of generic curves, guessed round trips and profiles that disagree about the reference", async () => {
    const { warnings } = await summary(profile("two", 0.72, 0.64, 500, 1000));
    expect(warnings.filter((each) => each.includes("bare"))).toHaveLength(1);
    expect(warnings.filter((each) => each.includes("100 ms assumed for engine two"))).toHaveLength(1);
    expect(warnings.filter((each) => each.includes("two has 500/1000 tokens, one 1000/1000"))).toHaveLength(1);
    expect(warnings).toHaveLength(3);
  });
});
