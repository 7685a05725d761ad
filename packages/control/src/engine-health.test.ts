import { describe, expect, it } from "vitest";
import { EngineHealth } from "./engine-health.ts";
import type { ProbeOutcome } from "./engine-probe.ts";

const http = (status: number): ProbeOutcome => ({ kind: "answer", status, body: "" });
const refused: ProbeOutcome = { kind: "refused", message: "connection refused" };
const late: ProbeOutcome = { kind: "timeout", message: "no answer within 2000 ms" };
const reset: ProbeOutcome = { kind: "failed", message: "ECONNRESET" };

/** Health after each of these outcomes. */
function after(outcomes: readonly ProbeOutcome[], rules = { replicas: 1, pathIsDefault: true }): string[] {
  const health = new EngineHealth(rules, 0);
  return outcomes.map((outcome, i) => {
    health.observe(outcome, i);
    return health.present.health;
  });
}

describe("an engine's health by its probes", () => {
  it.each([
    ["is ready at the first good answer", [http(200)], ["ready"]],
    ["is dead at once when it refuses", [http(200), refused], ["ready", "dead"]],
    ["is dead at the second bad answer", [http(200), http(503), http(503)], ["ready", "ready", "dead"]],
    ["is dead at the second reset", [http(204), reset, reset], ["ready", "ready", "dead"]],
    [
      "is not dead for one bad answer between good ones",
      [http(200), http(500), http(200), http(500)],
      Array(4).fill("ready"),
    ],
    ["is late twice without harm, for it is busy", [http(200), late, late, http(200)], Array(4).fill("ready")],
    ["is dead when late three times", [http(200), late, late, late], ["ready", "ready", "ready", "dead"]],
    ["is back after two good answers", [refused, http(200), http(200)], ["dead", "dead", "ready"]],
    [
      "must answer twice in a row to be back",
      [refused, http(200), refused, http(200), http(200)],
      ["dead", "dead", "dead", "dead", "ready"],
    ],
    ["is unknown where its default path is not there", [http(404), http(404), http(404)], Array(3).fill("unknown")],
  ] as const)("%s", (_title, outcomes, expected) => {
    expect(after(outcomes)).toEqual(expected);
  });

  it("takes a missing path for bad when somebody configured it", () => {
    expect(after([http(404), http(404)], { replicas: 1, pathIsDefault: false })).toEqual(["unknown", "dead"]);
  });

  it("takes one refusal of several replicas for one replica's", () => {
    expect(after([refused, http(200), refused, refused], { replicas: 3, pathIsDefault: true })).toEqual([
      "unknown",
      "ready",
      "ready",
      "dead",
    ]);
  });

  it("is undecided while one more answer would turn it", () => {
    const health = new EngineHealth({ replicas: 2, pathIsDefault: true }, 0);
    const undecided = [http(200), refused, refused, http(200), http(200), http(503)].map((outcome, i) => {
      health.observe(outcome, i);
      return health.undecided;
    });
    expect(undecided).toEqual([false, true, false, true, false, false]);
  });

  it("says why, and since when", () => {
    const health = new EngineHealth({ replicas: 1, pathIsDefault: true }, 5);
    expect(health.present).toEqual({ health: "unknown", reason: "not probed yet", sinceMs: 5 });
    expect(health.observe(http(503), 10)).toBe(false);
    expect(health.observe(http(503), 20)).toBe(true);
    expect(health.observe(http(500), 30)).toBe(false);
    expect(health.observe(http(500), 40)).toBe(false);
    expect(health.present).toEqual({ health: "dead", reason: "http 500", sinceMs: 20 });
  });
});
