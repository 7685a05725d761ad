import { describe, expect, it } from "vitest";
import { GuidevaneError, problem, showProblem } from "./errors.ts";

describe("an error", () => {
  it("is known by name, so that one from another copy of the package is too", () => {
    class GuidevaneErrorOfAnotherCopy extends Error {
      override readonly name = "GuidevaneError";
    }
    expect(GuidevaneError.is(new GuidevaneErrorOfAnotherCopy())).toBe(true);
    expect(GuidevaneError.is(new GuidevaneError("bad_usage", "x"))).toBe(true);
    expect(GuidevaneError.is(new Error("x"))).toBe(false);
    expect(GuidevaneError.is(null)).toBe(false);
  });

  it("keeps its cause", () => {
    const cause = new Error("inner");
    expect(new GuidevaneError("bad_usage", "outer", { cause }).cause).toBe(cause);
  });
});

describe("a problem in one line", () => {
  it.each([
    ["engines.a.capacityWps", -1, "engines.a.capacityWps: is bad (got -1)"],
    ["", "x", '(top level): is bad (got "x")'],
    ["a", undefined, "a: is bad"],
    ["a", Number.NaN, "a: is bad (got NaN)"],
    ["a", "y".repeat(100), `a: is bad (got "${"y".repeat(79)}…)`],
  ])("%s with %j", (path, value, line) => {
    expect(showProblem(problem("invalid_value", path, value, "is bad"))).toBe(line);
  });
});
