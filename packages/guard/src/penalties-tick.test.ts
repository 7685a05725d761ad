import { describe, expect, it } from "vitest";
import { Penalties } from "./penalties.ts";
import { evenFleet, nameOf } from "./penalty-harness.fixture.ts";
import { PENALTY_FLOOR } from "./penalty-ramp.ts";

/** Penalties of an even fleet, and an answer of one of its engines. */
function start(engines: number) {
  const penalties = new Penalties(0);
  let attempts = 0;
  return {
    penalties,
    fleet: evenFleet(engines),
    answer(engine: number, outcome: "success" | "fault", nowMs: number): void {
      const attempt = attempts++;
      penalties.began(attempt, { engine: nameOf(engine), requestClass: "chat", ttftMs: null, tbotMs: null }, nowMs);
      penalties.ended(attempt, outcome, null);
    },
  };
}

describe("a tick", () => {
  it("looks at the engines of which something was heard, not at all that there are", () => {
    const { penalties, fleet, answer } = start(1000);
    for (let engine = 0; engine < 1000; engine++) answer(engine, "success", engine);
    expect(penalties.awake).toBe(1000);
    penalties.tick(fleet, 1000);
    expect(penalties.awake).toBe(0);
    answer(7, "fault", 1100);
    answer(8, "success", 1200);
    penalties.tick(fleet, 1250);
    // What spoke against it is looked at until nothing does.
    expect(penalties.awake).toBe(1);
    for (let at = 0; at < 40; at++) answer(7, "success", 1300 + at);
    penalties.tick(fleet, 1500);
    expect(penalties.awake).toBe(0);
  });

  it("forgets those that are out, which a fleet may name", () => {
    const { penalties, fleet, answer } = start(3);
    for (let at = 0; at < 6; at++) answer(0, "fault", at);
    const engines = new Map(fleet.engines).set("e0", { ...fleet.engines.get("e0")!, takes: false });
    penalties.tick({ ...fleet, engines, out: () => [] }, 250);
    expect(penalties.verdict("e0").failFactor).toBe(PENALTY_FLOOR);
    penalties.tick({ ...fleet, engines, out: () => ["e0", "e1"] }, 500);
    expect(penalties.verdict("e0").evidence).toBeNull();
    expect(penalties.awake).toBe(0);
  });
});
