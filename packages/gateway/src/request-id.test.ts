import { ManualClock } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { requestIdOf } from "./request-id.ts";

describe("a request's id", () => {
  const clock = new ManualClock(0, 0x0199_7fa8_84fe);

  it("is the client's where that is a plain name", () => {
    expect(requestIdOf("a-1.B:2_c", clock, Math.random)).toBe("a-1.B:2_c");
    for (const sent of ["", "a b", "x".repeat(129), "ä"])
      expect(requestIdOf(sent, clock, Math.random)).toMatch(/^01997fa8-84fe-7/);
  });

  it("is a UUID of version 7 otherwise: the time, then chance from the first bit to the last", () => {
    expect(requestIdOf(undefined, clock, () => 0)).toBe("01997fa8-84fe-7000-8000-000000000000");
    expect(requestIdOf(undefined, clock, () => 1 - 2 ** -53)).toBe("01997fa8-84fe-7fff-bfff-ffffffffffff");
    const ids = Array.from({ length: 1000 }, () => requestIdOf(undefined, clock, Math.random));
    expect(new Set(ids).size).toBe(1000);
    for (const id of ids) expect(id).toMatch(/^01997fa8-84fe-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});
