import { describe, expect, it } from "vitest";
import { GuidevaneError } from "./errors.ts";
import { GENERIC_PROFILE, parseProfile, workOf } from "./profile.ts";

const good = {
  profile: "p",
  reference: { promptTokens: 512, outputTokens: 256 },
  work: { prefillPerKtok: 0.703125, decodePerKtok: 2.5 },
  prefillMsPerTok: 0.06,
  loop: "open",
  capacityWps: 12.5,
  ttftMs: [
    [0, 42],
    [0.5, 60],
    [0.9, 190],
  ],
  tbotMs: [
    [0, 9.1],
    [0.9, 15.2],
  ],
};

function problemsOf(change: Record<string, unknown>): { path: string; value: string | undefined; code: string }[] {
  try {
    parseProfile(JSON.stringify({ ...good, ...change }), "p.yaml");
  } catch (error) {
    if (GuidevaneError.is(error) && error.code === "bad_profile")
      return error.problems.map(({ path, value, code }) => ({ path, value, code }));
    throw error;
  }
  return [];
}

describe("a profile", () => {
  it("is read with null for what it does not say", () => {
    const profile = parseProfile(JSON.stringify(good), "p.yaml");
    expect(profile).toEqual({ ...good, sku: null, model: null, precision: null });
  });

  it("takes the optional curves, bands and source of a fitted one", () => {
    const band = { low: good.tbotMs, high: good.tbotMs };
    expect(
      problemsOf({ ttftP99Ms: good.ttftMs, band: { tbotMs: band }, source: { kind: "fitted", points: 24 } }),
    ).toEqual([]);
  });

  it.each([
    ["an unknown key", { ttft: [[0, 1]] }, "ttft", "missing_unit"],
    ["a key of no meaning", { colour: "red" }, "colour", "unknown_key"],
    ["a negative capacity", { capacityWps: -1 }, "capacityWps", "invalid_value"],
    ["a loop of another kind", { loop: "ring" }, "loop", "invalid_value"],
    ["a curve without knots", { tbotMs: [] }, "tbotMs", "invalid_value"],
    ["a first knot that is not at 0", { tbotMs: [[0.1, 5]] }, "tbotMs.0", "invalid_value"],
    [
      "a knot left of the one before",
      {
        tbotMs: [
          [0, 5],
          [0.5, 6],
          [0.5, 7],
        ],
      },
      "tbotMs.2",
      "invalid_value",
    ],
    [
      "a curve that falls",
      {
        tbotMs: [
          [0, 5],
          [0.5, 4],
        ],
      },
      "tbotMs.1",
      "invalid_value",
    ],
    [
      "a concave curve",
      {
        tbotMs: [
          [0, 5],
          [0.5, 9],
          [0.9, 10],
        ],
      },
      "tbotMs.2",
      "invalid_value",
    ],
    [
      "a reference request that is not 1.0 work",
      { work: { prefillPerKtok: 1, decodePerKtok: 1 } },
      "work",
      "invalid_value",
    ],
  ])("is refused for %s", (_what, change, path, code) => {
    expect(problemsOf(change)).toMatchObject([{ path, code }]);
  });

  it("may be off its unit of work by one per cent, no more", () => {
    const scaled = (factor: number) => ({ work: { prefillPerKtok: 0.703125 * factor, decodePerKtok: 2.5 * factor } });
    expect(problemsOf(scaled(1.0099))).toEqual([]);
    expect(problemsOf(scaled(1.0101))).toHaveLength(1);
  });

  it("may have a straight piece whose knots were rounded to decimals", () => {
    expect(
      problemsOf({
        tbotMs: [
          [0, 0.1],
          [0.1, 0.2],
          [0.2, 0.3],
          [0.7, 0.8],
        ],
      }),
    ).toEqual([]);
  });

  it("that stands in for none is itself a good profile", () => {
    const { sku: _sku, model: _model, precision: _precision, ...written } = GENERIC_PROFILE;
    expect(parseProfile(JSON.stringify(written), "generic")).toEqual(GENERIC_PROFILE);
    expect(workOf(GENERIC_PROFILE, 512, 256)).toBe(1);
  });
});
