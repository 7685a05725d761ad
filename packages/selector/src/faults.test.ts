import { decodeRing, parseClusterSnapshot } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { CHAT_BODY, type Driver, describeRouters } from "./driver.fixture.ts";
import { buildRing, editRing } from "./ring.ts";
import { OUT } from "./router.ts";
import { STATE, STATE_HEALTHY } from "./shared-state.ts";
import { SlotRegistry } from "./slots.ts";
import { type FixtureEngine, makeSnapshot } from "./snapshot.fixture.ts";

/** Faults that routers of this kind have had, each by its number, and what happens here instead. */

const equal = (count: number): FixtureEngine[] =>
  Array.from({ length: count }, (_, i) => ({ id: `e${i}`, weight: 1 / count }));

const snapshotOf = (engines: readonly FixtureEngine[], slots = 4096) =>
  makeSnapshot([{ class: "chat", engines }], { slots });

/** How many of the numbered keys each engine gets. */
function countsOf(driver: Driver, keys: number): Map<string | null, number> {
  const names = new Map([...driver.table.engineSlots].map(([id, slot]) => [slot, id]));
  const counts = new Map<string | null, number>();
  for (let key = 0; key < keys; key++) {
    const id = names.get(driver.routeKey(key)) ?? null;
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

const FIRST = '{"messages":[{"role":"user","content":"hi"}]}';

describeRouters(describe, "faults of selection", (load) => {
  it("B101: what health checks write leaves the count of running streams, and new requests prefer the other engine", () => {
    const driver = load(snapshotOf(equal(2)));
    driver.setStreams("e0", 10);
    for (let round = 0; round < 3; round++) {
      driver.setState("e0", STATE.outByProbe | STATE_HEALTHY);
      driver.setState("e0", STATE_HEALTHY);
    }
    const row = driver.table.inFlightRows[0]!;
    expect(driver.streams("e0", row)).toBe(10);
    for (let i = 0; i < 10; i++) {
      expect(driver.route(FIRST, { key: `new ${i}`, placement: true })).toBe("e1");
      driver.setStreams("e1", i);
    }
  });

  it("B102: engines that are out or draining are left out of what the living are held to", () => {
    const driver = load(snapshotOf(equal(4)));
    const key = Array.from({ length: 100 }, (_, i) => `k${i}`).find(
      (each) => driver.route(CHAT_BODY, { key: each }) === "e1",
    )!;
    driver.setState("e2", STATE.out | STATE_HEALTHY);
    driver.setState("e3", STATE.draining | STATE_HEALTHY);
    // By quarters the bound would be 5 of these 10; by halves it is 10.
    for (const [other, own] of [
      [5, 5],
      [4, 6],
      [1, 9],
    ] as const) {
      driver.setStreams("e0", other);
      driver.setStreams("e1", own);
      expect(driver.route(CHAT_BODY, { key })).toBe("e1");
    }
  });

  it("B103: a burst is seen as it comes: no engine gets more than twice its share, with keys or without", () => {
    for (const keyOf of [(i: number) => `session ${i}`, () => ""]) {
      const driver = load(snapshotOf(equal(4)));
      const sent = new Map<string, number>();
      for (let i = 0; i < 64; i++) {
        const engine = driver.route("{}", { key: keyOf(i) })!;
        sent.set(engine, (sent.get(engine) ?? 0) + 1);
        driver.setStreams(engine, sent.get(engine)!);
      }
      expect(Math.max(...sent.values())).toBeLessThanOrEqual(32);
      expect(sent.size).toBe(4);
    }
  });

  it("B105: adding or removing one engine moves that one's part of the keys, and another order none", () => {
    const before = buildRing(ids(10), Array(10).fill(0.1), 4096);
    const moved = (list: readonly string[]) => {
      const weights = list.map(() => 1 / list.length);
      const { owners } = editRing({ engines: ids(10), owners: before.owners }, list, weights, 4096);
      const engineOf = (slot: number) => list[owners[slot]!];
      return owners.filter((_, slot) => engineOf(slot) !== ids(10)[before.owners[slot]!]).length / 4096;
    };
    expect(Math.abs(moved(ids(11)) * 11 - 1)).toBeLessThan(0.3);
    expect(Math.abs(moved(ids(10).slice(1)) * 10 - 1)).toBeLessThan(0.3);
    expect(moved([...ids(10)].reverse())).toBe(0);
  });

  it("B106: gateways that number engines otherwise choose the same engine for each key, also while one is out", () => {
    const snapshot = snapshotOf(equal(10));
    const reversed = { ...snapshot, engines: Object.fromEntries(Object.entries(snapshot.engines).reverse()) };
    const registry = new SlotRegistry({ engines: 64, cells: 8, moves: 64 });
    for (const id of ["x", "y", "z"]) registry.holdEngine(id);
    const [one, other] = [load(snapshot), load(reversed, registry)];
    expect(one.slot("e0")).not.toBe(other.slot("e0"));
    for (const driver of [one, other]) driver.setState("e3", STATE.out | STATE_HEALTHY);
    for (let i = 0; i < 2000; i++) {
      const key = [`k${i}`, `ключ 世界 ${i}`, `${i}${"x".repeat(4096)}`][i % 3]!;
      const [a, b] = [one, other].map((driver) => driver.route(CHAT_BODY, { key }));
      if (a !== b) expect.fail(`${key}: ${a} and ${b}`);
    }
  });

  it("B107: the number of slots decides as a ring of so many slots does", () => {
    for (const bits of [6, 12]) {
      const snapshot = snapshotOf(equal(7), 2 ** bits);
      const owners = decodeRing(snapshot.cells[0]!);
      const driver = load(snapshot);
      for (let i = 0; i < 500; i++) {
        const engine = driver.route(CHAT_BODY, { key: `k${i}` });
        expect(engine).toBe(`e${owners[driver.out[OUT.keyHash]! >>> (32 - bits)]}`);
      }
    }
  });

  it("B109: an engine of weight 0 gets nothing while another can serve, and stands in when none can", () => {
    const reserve = (id: string) => ({ id, weight: 0 });
    const driver = load(snapshotOf([reserve("a"), { id: "b", weight: 1 }]));
    driver.setStreams("a", 3);
    expect(countsOf(driver, 2000)).toEqual(new Map([["b", 2000]]));
    driver.setState("b", STATE.out);
    expect(countsOf(driver, 2000)).toEqual(new Map([["a", 2000]]));
    expect(() => buildRing(["a", "b"], [0, 0], 64)).toThrow("a ring needs weights with a positive sum, got 0");
  });

  it.each([
    ["1 : 2 : 5", [1, 2, 5], 0.1],
    ["1 : 999", [1, 999], 0.5],
    ["40 of one weight", Array<number>(40).fill(1), 0.1],
  ])("B110: shares are the weights, small ones too: %s", (_, parts, tolerance) => {
    const all = parts.reduce((sum, part) => sum + part, 0);
    const driver = load(snapshotOf(parts.map((part, i) => ({ id: `e${i}`, weight: part / all }))));
    const keys = 50_000;
    const counts = countsOf(driver, keys);
    for (const [i, part] of parts.entries()) {
      const wanted = (part / all) * keys;
      expect(Math.abs(counts.get(`e${i}`)! - wanted)).toBeLessThan(tolerance * wanted + 4 * Math.sqrt(wanted));
    }
  });

  it("B111: the keys of an engine that is ejected spread over the others by weight, and all return", () => {
    const driver = load(snapshotOf(equal(10)));
    const place = () => Array.from({ length: 10_000 }, (_, key) => driver.routeKey(key));
    const before = place();
    const gone = driver.slot("e4");
    driver.setState("e4", STATE.out | STATE_HEALTHY);
    const during = place();
    const extra = new Map<number, number>();
    for (const [key, engine] of during.entries()) {
      if (before[key] !== gone) expect(engine).toBe(before[key]);
      else extra.set(engine, (extra.get(engine) ?? 0) + 1);
    }
    const fair = before.filter((engine) => engine === gone).length / 9;
    expect(extra.size).toBe(9);
    expect(Math.max(...extra.values())).toBeLessThan(1.5 * fair);
    driver.setState("e4", STATE_HEALTHY);
    expect(place()).toEqual(before);
  });
});

it("B109: a weight that is no part of one is refused where a snapshot is loaded, with the value", () => {
  const snapshot = snapshotOf(equal(2));
  for (const weight of [-0.5, 1e308, "2", null]) {
    const cells = [{ ...snapshot.cells[0]!, weights: [weight, 0.5] }];
    expect(() => parseClusterSnapshot(JSON.stringify({ ...snapshot, cells }))).toThrow(/weights/);
  }
});

function ids(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `e${i}`);
}
