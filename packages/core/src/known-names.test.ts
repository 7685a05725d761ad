import { describe, expect, it } from "vitest";
import { knownNames } from "./known-names.ts";

describe("the names that an unknown one could have been", () => {
  it("are all of them where they are few, in their order", () => {
    expect(knownNames("x", ["b", "a"])).toBe("known: b, a");
    expect(knownNames("x", new Map([["only", 1]]).keys())).toBe("known: only");
    expect(knownNames("x", [])).toBe("there is none");
  });

  it("are of many the most alike ones, whatever their case", () => {
    const engines = Array.from({ length: 200 }, (_, n) => `use1-${n}`);
    engines[150] = "euw1-gpu-7";
    expect(knownNames("EUW1-gpu-77", engines)).toMatch(/^nearest of 200: euw1-gpu-7, (use1-\d+, ){3}use1-\d+$/);
    expect(knownNames("use-12", engines)).toMatch(/^nearest of 200: use1-12, /);
    expect(knownNames("", engines)).toMatch(/^nearest of 200: use1-0, use1-1, /);
  });

  it("are found for texts of any length", () => {
    const names = Array.from({ length: 20 }, (_, n) => `${"long".repeat(1000)}-${n}`);
    expect(knownNames("y".repeat(1e6), names)).toContain("nearest of 20: long");
  });
});
