import { describe, expect, it } from "vitest";
import { ineligibleFor } from "./eligible.ts";
import type { ClassNeeds } from "./fleet.ts";

const needs: ClassNeeds = { capabilities: [], residency: [], compute: [], contextTokens: 0, networkMs: null };
const engine = { models: ["m"], capabilities: null, residency: null, compute: null, maxContextTokens: null };

describe("an engine is eligible", () => {
  it("when it has the model and the class needs nothing", () => {
    expect(ineligibleFor({ model: "m", needs }, engine, 500)).toBeNull();
  });

  it("for a capability that is not known of it, and for any context while its limit is not known", () => {
    expect(
      ineligibleFor({ model: "m", needs: { ...needs, capabilities: ["vision"], contextTokens: 1e6 } }, engine, 0),
    ).toBeNull();
  });

  it("at just the distance and just the context allowed", () => {
    const limits = { ...needs, networkMs: 150, contextTokens: 8192 };
    expect(ineligibleFor({ model: "m", needs: limits }, { ...engine, maxContextTokens: 8192 }, 150)).toBeNull();
  });
});

describe("an engine is ruled out by", () => {
  it.each([
    ["model", {}, { models: ["other"] }],
    ["capability", { capabilities: ["vision"] }, { capabilities: ["tools"] }],
    ["residency", { residency: ["eu"] }, { residency: "us" }],
    ["residency", { residency: ["eu"] }, {}],
    ["compute", { compute: ["h100"] }, { compute: "a100" }],
    ["compute", { compute: ["h100"] }, {}],
    ["context", { contextTokens: 8193 }, { maxContextTokens: 8192 }],
    ["network", { networkMs: 149 }, {}],
  ] as const)("%s: %j against %j", (by, need, has) => {
    const spec = { model: "m", needs: { ...needs, ...need } as ClassNeeds };
    expect(ineligibleFor(spec, { ...engine, ...has } as typeof engine, 150)?.by).toBe(by);
  });
});
