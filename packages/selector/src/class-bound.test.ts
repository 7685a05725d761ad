import { describe, expect, it } from "vitest";
import { ClassBound } from "./class-bound.ts";
import { describeRouters } from "./driver.fixture.ts";
import { makeSnapshot } from "./snapshot.fixture.ts";

const LATER = '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}';

describeRouters(describe, "the bound of a class", (load) => {
  const engines = [
    { id: "a", weight: 0.5 },
    { id: "b", weight: 0.3, expectedMs: 2000 },
    { id: "c", weight: 0.2 },
    { id: "r", weight: 0, spareWps: 5 },
  ];
  const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);

  it("is the router's own: a key is turned from its home exactly where that is over", () => {
    const verdicts = new Set<boolean>();
    for (let most = 0; most < 40; most++) {
      const driver = load(makeSnapshot([{ class: "chat", engines }]));
      const bound = new ClassBound(driver.table, driver.registry.state);
      for (const [at, id] of ["a", "b", "c"].entries()) driver.setStreams(id, (most * (at * 7 + 3)) % 29);
      const slots = bound.begin(0);
      expect(slots).toEqual(["a", "b", "c"].map((id) => driver.slot(id)));
      const over = slots.map((slot) => bound.isOver(slot));
      for (const key of keys) {
        driver.registry.state.moves.fill(0);
        driver.route(LATER, { key });
        const isOver = over[slots.indexOf(driver.slot(driver.home!))]!;
        expect(driver.reason === "bounded").toBe(isOver && over.some((each) => !each));
        verdicts.add(isOver);
      }
    }
    expect([...verdicts].sort()).toEqual([false, true]);
  });

  it("compares streams by their engines' parts, as placement does", () => {
    const driver = load(makeSnapshot([{ class: "chat", engines }]));
    const bound = new ClassBound(driver.table, driver.registry.state);
    const [a, b, c] = bound.begin(0) as [number, number, number];
    driver.setStreams("a", 5);
    driver.setStreams("b", 5);
    driver.setStreams("c", 3);
    expect([bound.hasFewer(b, a), bound.hasFewer(a, b), bound.hasFewer(a, c)]).toEqual([true, false, true]);
  });

  it("has no engines for a class that has none", () => {
    const driver = load(makeSnapshot([{ class: "chat", engines }], { classes: { idle: {} } }));
    const bound = new ClassBound(driver.table, driver.registry.state);
    expect(bound.begin(driver.table.classes.indexOf("idle"))).toEqual([]);
  });
});
