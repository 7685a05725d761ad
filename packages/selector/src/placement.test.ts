import { describe, expect, it } from "vitest";
import { describeRouters } from "./driver.fixture.ts";
import { OUT, PATH } from "./router.ts";
import { STATE, STATE_HEALTHY } from "./shared-state.ts";
import { type FixtureEngine, makeSnapshot } from "./snapshot.fixture.ts";

function snapshotOf(engines: readonly FixtureEngine[]) {
  return makeSnapshot([{ class: "chat", engines }]);
}

const FOUR: readonly FixtureEngine[] = [
  { id: "a", weight: 0.4 },
  { id: "b", weight: 0.3 },
  { id: "c", weight: 0.2 },
  { id: "d", weight: 0.1 },
];

function count(placed: readonly (string | null)[], id: string | null): number {
  return placed.filter((each) => each === id).length;
}

describeRouters(describe, "placement and moves", (load) => {
  describe("memory of moves", () => {
    const LATER = '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}';
    const three = ["a", "b", "c"].map((id) => ({ id, weight: 1 / 3 }));

    /** A driver whose key `k` was moved from home by the bound. */
    const moved = () => {
      const driver = load(snapshotOf(three));
      driver.route(LATER, { key: "k" });
      const home = driver.home!;
      driver.setStreams(home, 90);
      const engine = driver.route(LATER, { key: "k", nowS: 100 })!;
      expect(driver.reason).toBe("bounded");
      driver.setStreams(home, 0);
      return { driver, home, engine };
    };

    it("keeps a conversation that the bound moved where it went, until it rests for ten minutes", () => {
      const { driver, home, engine } = moved();
      for (const nowS of [101, 700, 1300]) {
        expect(driver.route(LATER, { key: "k", nowS })).toBe(engine);
        expect([driver.reason, driver.home]).toEqual(["followed", home]);
      }
      expect(driver.route(LATER, { key: "k", nowS: 1901 })).toBe(home);
      expect(driver.reason).toBe("home");
    });

    it("moves it on when its engine is over its bound, and home again when that one takes it", () => {
      const { driver, home, engine } = moved();
      driver.setStreams(engine, 90);
      expect(driver.route(LATER, { key: "k", nowS: 101 })).toBe(home);
      driver.setStreams(engine, 0);
      expect(driver.route(LATER, { key: "k", nowS: 102 })).toBe(home);
      expect(driver.reason).toBe("home");
    });

    it("sends it elsewhere while its engine is drained, tried or dead, and remembers no such move", () => {
      const { driver, engine } = moved();
      for (const state of [STATE.draining, STATE.out, STATE.cooling, STATE.outByProbe]) {
        driver.setState(engine, state | STATE_HEALTHY);
        expect(driver.route(LATER, { key: "k", nowS: 101 })).not.toBe(engine);
      }
      driver.setState(engine, STATE_HEALTHY);
      expect(driver.route(LATER, { key: "k", nowS: 102, tried: [engine] })).not.toBe(engine);
      expect(driver.reason).toBe("retry");
      expect(driver.route(LATER, { key: "k", nowS: 103 })).toBe(engine);
    });

    it("remembers none of the moves of engines that are out, draining, cooling or penalised", () => {
      const driver = load(snapshotOf(three));
      driver.route(LATER, { key: "k" });
      const home = driver.home!;
      for (const state of [STATE.out, STATE.draining | STATE_HEALTHY, STATE.cooling | STATE_HEALTHY, 0]) {
        driver.setState(home, state);
        expect(driver.route(LATER, { key: "k" })).not.toBe(home);
        driver.setState(home, STATE_HEALTHY);
        expect(driver.route(LATER, { key: "k" })).toBe(home);
      }
      expect(driver.registry.state.moves.every((word) => word === 0)).toBe(true);
    });

    it("comes home when the plan gives the engine nothing any more", () => {
      const { driver, home, engine } = moved();
      const left = three.filter(({ id }) => id !== engine);
      const after = load(snapshotOf(left), driver.registry);
      after.route(LATER, { key: "k", nowS: 101 });
      expect([after.home, after.reason]).toEqual([expect.stringMatching(/[abc]/), "home"]);
      expect(home).not.toBe(engine);
    });
  });

  describe("placement", () => {
    const FIRST = '{"messages":[{"role":"user","content":"hi"}]}';
    const LATER = '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}]}';

    it("sends a first request to the one of two that has fewer streams for its part, and later ones after it", () => {
      const driver = load(
        snapshotOf([
          { id: "a", weight: 0.5 },
          { id: "b", weight: 0.25, expectedMs: 2000 },
        ]),
      );
      const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
      const ofA = keys.filter((key) => driver.route(LATER, { key }) === "a");
      expect(ofA.length).toBeGreaterThan(50);
      // Both have the same part: half the requests, twice the time.
      driver.setStreams("a", 3);
      driver.setStreams("b", 3);
      expect(driver.route(FIRST, { key: ofA[0]!, placement: true })).toBe("a");
      expect([driver.reason, driver.second]).toEqual(["home", "b"]);
      driver.setStreams("b", 2);
      expect(driver.route(FIRST, { key: ofA[0]! })).toBe("a");
      expect(driver.route(FIRST, { key: ofA[0]!, placement: true })).toBe("b");
      expect([driver.reason, driver.second]).toEqual(["second", "b"]);
      driver.setStreams("b", 4);
      for (const body of [LATER, FIRST]) {
        expect(driver.route(body, { key: ofA[0]!, placement: true })).toBe("b");
        expect(driver.reason).toBe("followed");
      }
      expect(driver.route(LATER, { key: ofA[1]!, placement: true })).toBe("a");
    });

    it("chooses only engines that are fine, and never for a request without a key or a second attempt", () => {
      const driver = load(snapshotOf(FOUR.slice(0, 2)));
      const key = "k";
      driver.route(LATER, { key });
      const home = driver.home!;
      const other = home === "a" ? "b" : "a";
      driver.setStreams(home, 3);
      for (const state of [STATE.cooling | STATE_HEALTHY, STATE.out, 0]) {
        driver.setState(other, state);
        expect(driver.route(FIRST, { key, placement: true })).toBe(home);
      }
      driver.setState(other, STATE_HEALTHY);
      for (let i = 0; i < 50; i++) {
        const engine = driver.route('{"messages":[]}', { placement: true });
        expect([driver.keySource, engine]).toEqual(["none", driver.home]);
      }
      driver.route(FIRST, { key, placement: true, tried: ["none"] });
      expect([driver.out[OUT.engine], driver.reason]).toEqual([driver.slot(home), "retry"]);
      expect(driver.registry.state.moves.every((word) => word === 0)).toBe(true);
    });

    it("keeps shares nearer to the weights than keys alone do", () => {
      const weights = [0.4, 0.3, 0.2, 0.1];
      const off = (placement: boolean) => {
        const driver = load(snapshotOf(FOUR));
        const running: string[] = [];
        let error = 0;
        for (let i = 0; i < 4000; i++) {
          const engine = driver.route(FIRST, { key: `k${i}`, placement })!;
          running.push(engine);
          driver.setStreams(engine, count(running, engine));
          if (running.length > 100) {
            const ended = running.shift()!;
            driver.setStreams(ended, count(running, ended));
          }
          if (i < 200) continue;
          for (const [e, { id }] of FOUR.entries()) error += Math.abs(count(running, id) - 100 * weights[e]!);
        }
        return error / 3800;
      };
      const [byKey, placed] = [off(false), off(true)];
      expect(placed).toBeLessThan(byKey / 2);
    });
  });

  it("follows the engine that holds a response, whatever its load and its penalty, while it may serve", () => {
    const driver = load(snapshotOf([...FOUR, { id: "r", weight: 0 }]));
    const body = '{"previous_response_id":"resp","input":"more"}';
    const route = (followed: string) => driver.route(body, { path: PATH.responses, followed });
    for (const id of ["a", "b", "c", "d", "r"]) {
      driver.setStreams(id, 500);
      driver.setState(id, 0);
      expect(route(id)).toBe(id);
      expect([driver.reason, driver.keySource]).toEqual(["followed", "previous_response_id"]);
      for (const state of [STATE.out, STATE.draining, STATE.cooling, STATE.outByProbe]) {
        driver.setState(id, state | STATE_HEALTHY);
        expect(route(id)).not.toBe(id);
        expect(driver.reason).not.toBe("followed");
      }
      driver.setState(id, STATE_HEALTHY);
      driver.setStreams(id, 0);
    }
  });
});
