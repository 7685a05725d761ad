import { describe, expect, it } from "vitest";
import { CHAT_BODY, type Driver, describeRouters } from "./driver.fixture.ts";
import { buildRing } from "./ring.ts";
import { OUT } from "./router.ts";
import { STATE, STATE_HEALTHY } from "./shared-state.ts";
import { SlotRegistry } from "./slots.ts";
import { type FixtureEngine, makeSnapshot } from "./snapshot.fixture.ts";

const KEYS = 20_000;

function snapshotOf(engines: readonly FixtureEngine[], options: { bootstrap?: boolean } = {}) {
  return makeSnapshot([{ class: "chat", engines }], options);
}

const FOUR: readonly FixtureEngine[] = [
  { id: "a", weight: 0.4 },
  { id: "b", weight: 0.3 },
  { id: "c", weight: 0.2 },
  { id: "d", weight: 0.1 },
];

/** The engine of each of many keys, none of them moved before. */
function placements(driver: Driver, keys = KEYS): (string | null)[] {
  driver.registry.state.moves.fill(0);
  const names = new Map([...driver.table.engineSlots].map(([id, slot]) => [slot, id]));
  return Array.from({ length: keys }, (_, key) => names.get(driver.routeKey(key)) ?? null);
}

function count(placed: readonly (string | null)[], id: string | null): number {
  return placed.filter((each) => each === id).length;
}

/** Five standard deviations of a count of `of` draws with this probability. */
function within(of: number, probability: number): number {
  return 5 * Math.sqrt(of * probability * (1 - probability));
}

describeRouters(describe, "pick", (load) => {
  it("sends each slot's keys to its owner, so that shares are within one slot of the weights", () => {
    const weights = [0.4003, 0.3, 0.1997, 0.1];
    const engines = FOUR.map(({ id }, i) => ({ id, weight: weights[i]! }));
    const driver = load(snapshotOf(engines));
    const { owners } = buildRing(
      engines.map(({ id }) => id),
      weights,
      4096,
    );
    const owned = new Map<number, string>();
    for (let key = 0; owned.size < 4096 && key < 200_000; key++) {
      driver.routeKey(key);
      const slot = driver.out[OUT.slot]!;
      if (driver.home !== engines[owners[slot]!]!.id) expect.fail(`slot ${slot} went to ${driver.home}`);
      owned.set(slot, driver.home!);
    }
    expect(owned.size).toBe(4096);
    for (const [i, { id }] of engines.entries()) {
      const slots = [...owned.values()].filter((each) => each === id).length;
      expect(Math.abs(slots - weights[i]! * 4096)).toBeLessThan(1);
    }
    expect(driver.reason).toBe("home");
  });

  it("moves only the keys of an engine that is out, to the others by weight, and all come home after", () => {
    const driver = load(snapshotOf(FOUR));
    const before = placements(driver);
    driver.setState("b", STATE.out | STATE_HEALTHY);
    const during = placements(driver);
    const moved = during.filter((_, key) => before[key] === "b");
    expect(during.filter((id, key) => before[key] !== "b" && id !== before[key])).toEqual([]);
    expect(count(during, "b")).toBe(0);
    for (const [id, part] of [
      ["a", 4 / 7],
      ["c", 2 / 7],
      ["d", 1 / 7],
    ] as const)
      expect(Math.abs(count(moved, id) - moved.length * part)).toBeLessThan(within(moved.length, part));
    driver.setState("b", STATE_HEALTHY);
    expect(placements(driver)).toEqual(before);
  });

  it("says why another than home took it, and which the next candidate was", () => {
    const driver = load(snapshotOf(FOUR));
    expect(driver.route(CHAT_BODY, { key: "k" })).toBe(driver.home);
    const home = driver.home!;
    expect([driver.reason, driver.second]).toEqual(["home", null]);
    for (const [state, reason] of [
      [STATE.out | STATE_HEALTHY, "ejected"],
      [STATE.draining | STATE_HEALTHY, "ejected"],
      [STATE.outByProbe | STATE_HEALTHY, "ejected"],
      [STATE.cooling | STATE_HEALTHY, "cooled"],
      [0, "penalised"],
    ] as const) {
      driver.setState(home, state);
      const engine = driver.route(CHAT_BODY, { key: "k" });
      expect(engine).not.toBe(home);
      expect([driver.home, driver.second, driver.reason]).toEqual([home, engine, reason]);
    }
    driver.setState(home, STATE_HEALTHY);
    driver.setStreams(home, 100);
    const engine = driver.route(CHAT_BODY, { key: "k" });
    expect([driver.home, driver.second, driver.reason]).toEqual([home, engine, "bounded"]);
  });

  it("gives an engine of weight zero nothing while another can serve", () => {
    const driver = load(snapshotOf([...FOUR, { id: "r", weight: 0 }]));
    for (const id of ["a", "b", "c"]) driver.setState(id, STATE.out);
    const placed = placements(driver);
    expect(count(placed, "r")).toBe(0);
    expect(count(placed, "d")).toBe(KEYS);
  });

  it("spreads keys over the reserves by spare capacity when every engine of the ring is out", () => {
    const driver = load(
      snapshotOf([
        { id: "a", weight: 1 },
        { id: "r", weight: 0, spareWps: 3 },
        { id: "s", weight: 0, spareWps: 1 },
      ]),
    );
    driver.setState("a", STATE.out);
    const placed = placements(driver);
    expect(Math.abs(count(placed, "r") - KEYS * 0.75)).toBeLessThan(within(KEYS, 0.75));
    expect(count(placed, "r") + count(placed, "s")).toBe(KEYS);
    expect(driver.reason).toBe("reserve");
    // Under load the spread stays: a reserve's bound is by its spare too.
    driver.setStreams("r", 60);
    driver.setStreams("s", 20);
    expect(placements(driver)).toEqual(placed);
  });

  it("never lands on a reserve without spare capacity while one with some is there, but before no answer at all", () => {
    const driver = load(
      snapshotOf([
        { id: "a", weight: 1 },
        { id: "r", weight: 0, spareWps: 0 },
        { id: "s", weight: 0, spareWps: 1 },
      ]),
    );
    driver.setState("a", STATE.out);
    expect(count(placements(driver, 1000), "s")).toBe(1000);
    driver.setState("s", STATE.out);
    expect(count(placements(driver, 1000), "r")).toBe(1000);
  });

  it("moves a penalised engine's keys by its factor, the same ones while it falls", () => {
    const driver = load(snapshotOf(FOUR));
    const before = placements(driver);
    const homeKeys = before.flatMap((id, key) => (id === "a" ? [key] : []));
    let stayed = new Set(homeKeys);
    for (const factor of [0.75, 0.5, 0.02]) {
      driver.setState("a", Math.round(factor * 65_535));
      const during = placements(driver);
      const stay = homeKeys.filter((key) => during[key] === "a");
      expect(Math.abs(stay.length - homeKeys.length * factor)).toBeLessThan(within(homeKeys.length, factor));
      expect(stay.every((key) => stayed.has(key))).toBe(true);
      expect(during.filter((id, key) => before[key] !== "a" && id !== before[key])).toEqual([]);
      stayed = new Set(stay);
    }
  });

  it("never lets a penalty or a cooling take the only candidate", () => {
    const driver = load(snapshotOf([{ id: "a", weight: 1 }]));
    for (const state of [0, STATE.cooling | STATE_HEALTHY, STATE.cooling]) {
      driver.setState("a", state);
      expect(count(placements(driver, 100), "a")).toBe(100);
      expect(driver.reason).toBe("home");
    }
  });

  it("asks a cooling engine last: after penalised ones and those over their bound", () => {
    const driver = load(snapshotOf(FOUR.slice(0, 3)));
    driver.setState("a", STATE.cooling | STATE_HEALTHY);
    driver.setState("b", 0);
    driver.setStreams("c", 1000);
    expect(count(placements(driver, 500), "c")).toBe(500);
    driver.setState("c", STATE.out);
    expect(count(placements(driver, 500), "b")).toBe(500);
    driver.setState("b", STATE.out);
    expect(count(placements(driver, 500), "a")).toBe(500);
  });

  it("gives nothing to engines that are out or draining", () => {
    const driver = load(snapshotOf(FOUR.slice(0, 2)));
    driver.setState("a", STATE.out | STATE_HEALTHY);
    driver.setState("b", STATE.draining | STATE_HEALTHY);
    expect(driver.route()).toBe(null);
    expect(driver.status).toBe("exhausted");
  });

  it("lets traffic flow to engines that only probes have out, when nothing else is left", () => {
    const driver = load(snapshotOf(FOUR.slice(0, 3)));
    driver.setState("a", STATE.outByProbe | STATE_HEALTHY);
    driver.setState("b", STATE.outByProbe | STATE_HEALTHY);
    expect(count(placements(driver, 500), "c")).toBe(500);
    driver.setState("c", STATE.out);
    const placed = placements(driver);
    expect(Math.abs(count(placed, "a") - (KEYS * 4) / 7)).toBeLessThan(within(KEYS, 4 / 7));
    expect(count(placed, null)).toBe(0);
    expect(driver.reason).toBe("fail-open");
  });

  it("never repeats an engine tried, and says exhausted when all were", () => {
    const driver = load(snapshotOf([...FOUR.slice(0, 2), { id: "r", weight: 0 }]));
    for (let key = 0; key < 100; key++) {
      const tried: string[] = [];
      for (let attempt = 0; attempt < 3; attempt++) {
        const engine = driver.route(CHAT_BODY, { key: `k${key}`, tried })!;
        expect(tried).not.toContain(engine);
        expect(driver.reason).toBe(attempt === 0 ? "home" : "retry");
        tried.push(engine);
      }
      expect(tried[2]).toBe("r");
      expect(driver.route(CHAT_BODY, { key: `k${key}`, tried })).toBe(null);
      expect(driver.status).toBe("exhausted");
    }
  });

  describe("bound", () => {
    it("lets an engine have twice its part of the cell's streams, and what chance brings where they are few", () => {
      const driver = load(
        snapshotOf([
          { id: "a", weight: 0.5 },
          { id: "b", weight: 0.25 },
          { id: "c", weight: 0.25 },
        ]),
      );
      const stays = (streams: Record<string, number>) => {
        for (const [id, each] of Object.entries(streams)) driver.setStreams(id, each);
        return count(placements(driver, 2000), "b") > 0;
      };
      // b's part is a quarter: at 400 streams in all its bound is 200, more than 100 + 4 · 10.
      expect(stays({ a: 100, b: 200, c: 100 })).toBe(true);
      expect(stays({ a: 99, b: 201, c: 100 })).toBe(false);
      // At 40 it is 10 + 4 · √10 = 22.6, more than 20.
      expect(stays({ a: 9, b: 22, c: 9 })).toBe(true);
      expect(stays({ a: 9, b: 23, c: 8 })).toBe(false);
      // Where all are its own, 7 are just below 1.75 + 4 · √1.75 = 7.04, 8 above 2 + 4 · √2 = 7.7.
      expect(stays({ a: 0, b: 7, c: 0 })).toBe(true);
      expect(stays({ a: 0, b: 8, c: 0 })).toBe(false);
    });

    it("never minds four, however small its part", () => {
      const driver = load(
        snapshotOf([
          { id: "a", weight: 0.99 },
          { id: "b", weight: 0.01 },
        ]),
      );
      for (const [streams, stays] of [
        [4, true],
        [5, false],
      ] as const) {
        driver.setStreams("b", streams);
        expect(count(placements(driver, 2000), "b") > 0).toBe(stays);
      }
    });

    it("measures a part by weight × expected time", () => {
      const driver = load(
        snapshotOf([
          { id: "fast", weight: 0.5, expectedMs: 1000 },
          { id: "slow", weight: 0.5, expectedMs: 3000 },
        ]),
      );
      // At equal rates the slow engine holds three quarters of the streams; its bound is one and a half times all.
      driver.setStreams("fast", 0);
      driver.setStreams("slow", 100);
      expect(count(placements(driver, 500), "slow")).toBeGreaterThan(0);
      driver.setStreams("slow", 0);
      driver.setStreams("fast", 100);
      expect(count(placements(driver, 500), "fast")).toBe(0);
    });

    it("is held against each candidate in turn; if all are over, the first takes it", () => {
      const driver = load(snapshotOf([...FOUR, { id: "r", weight: 0 }]));
      const before = placements(driver, 500);
      // Of 80 streams c may have 32 and d 19.
      driver.setStreams("c", 50);
      driver.setStreams("d", 30);
      const during = placements(driver, 500);
      expect(count(before, "c") + count(before, "d")).toBeGreaterThan(0);
      expect([count(during, "c"), count(during, "d"), count(during, "r")]).toEqual([0, 0, 0]);
      // Everything that is not out is over: streams of engines now dead still count.
      driver.setStreams("a", 5);
      driver.setStreams("b", 5);
      driver.setStreams("c", 5);
      driver.setStreams("d", 5);
      driver.setStreams("r", 5);
      for (const id of ["a", "b", "c"]) driver.setState(id, STATE.out);
      expect(count(placements(driver, 500), "d")).toBe(500);
    });

    it("does not move keys of living engines when half of the cell dies", () => {
      const engines = ["a", "b", "c", "d"].map((id) => ({ id, weight: 0.25 }));
      const driver = load(snapshotOf(engines));
      const before = placements(driver, 2000);
      driver.setState("a", STATE.out);
      driver.setState("b", STATE.out);
      // Half each by weight, and chance: without the dead ones' parts taken out this would be over.
      driver.setStreams("c", 55);
      driver.setStreams("d", 45);
      const during = placements(driver, 2000);
      expect(during.filter((id, key) => (before[key] === "c" || before[key] === "d") && id !== before[key])).toEqual(
        [],
      );
    });

    it("never applies to the only candidate", () => {
      const driver = load(snapshotOf([{ id: "a", weight: 1 }]));
      driver.setStreams("a", 1000);
      expect(driver.route()).toBe("a");
      expect(driver.reason).toBe("home");
    });
  });

  describe("without a ring", () => {
    it("places keys by weighted rendezvous, and moves only those of an engine that is out", () => {
      const driver = load(snapshotOf(FOUR, { bootstrap: true }));
      const before = placements(driver);
      expect(driver.reason).toBe("bootstrap");
      for (const { id, weight } of FOUR)
        expect(Math.abs(count(before, id) - KEYS * weight)).toBeLessThan(within(KEYS, weight));
      driver.setState("c", STATE.out);
      const during = placements(driver);
      expect(during.filter((id, key) => before[key] !== "c" && id !== before[key])).toEqual([]);
      expect(count(during, "c")).toBe(0);
    });
  });

  it("agrees with another gateway, whose engines have other slots, on 1,000,000 keys", () => {
    const engines = Array.from({ length: 20 }, (_, i) => ({ id: `engine-${i}`, weight: i === 7 ? 0 : 1 + (i % 5) }));
    const snapshot = snapshotOf(engines);
    const registry = new SlotRegistry({ engines: 64, cells: 8 });
    for (const id of ["stranger", "engine-19", "engine-3", "engine-7"]) registry.holdEngine(id);
    registry.holdCell("elsewhere");
    const [one, other] = [load(snapshot), load(snapshot, registry)];
    expect(one.slot("engine-3")).not.toBe(other.slot("engine-3"));
    for (const driver of [one, other]) {
      driver.setState("engine-1", STATE.out);
      driver.setState("engine-2", 30_000);
      driver.setState("engine-4", STATE.cooling | STATE_HEALTHY);
    }
    const toOther = new Int32Array(64).fill(-1);
    for (const { id } of engines) toOther[one.slot(id)] = other.slot(id);
    let differing = 0;
    for (let key = 0; key < 1_000_000; key++) if (toOther[one.routeKey(key)] !== other.routeKey(key)) differing++;
    expect(differing).toBe(0);
  }, 120_000);
});
