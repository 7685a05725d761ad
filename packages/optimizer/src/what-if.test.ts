import { describe, expect, it } from "vitest";
import { inputsOf, threeClusters } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import { type Change, whatIf } from "./what-if.ts";

const CLOSED = { evenLoadMs: 0 };
const BUDGET = { deadlineMs: null };

async function ask(...changes: Change[]) {
  return whatIf(inputsOf(await threeClusters()), changes, null, BUDGET, CLOSED);
}

describe("what if", () => {
  it("nothing changes: nothing moves and nothing costs more", async () => {
    const answer = await ask();
    expect(answer).toMatchObject({ status: "solved", weights: [], keysMoved: 0 });
    expect(answer.after!.objectiveMs).toBeCloseTo(394.92, 2);
    expect(answer.after).toEqual(answer.before);
  });

  it("an engine drains: its work moves, the rest is shed, and the cost says how much", async () => {
    const { before, after, engines, weights, keysMoved } = await ask({ kind: "drain", engine: "engine-c" });
    expect(before!.shedRps).toBe(0);
    // 250 requests/s on the 200 that a and b hold.
    expect(after!.shedRps).toBeGreaterThanOrEqual(50);
    expect(after!.shedRps).toBeLessThan(52);
    expect(after!.objectiveMs).toBeGreaterThan(10 * before!.objectiveMs);
    expect(engines.find(({ engine }) => engine === "engine-c")!.capacityWps).toEqual({ before: 80, after: 0 });
    const ofC = weights.filter(({ engine, cluster }) => engine === "engine-c" && cluster === "c");
    expect(ofC[0]!.weight).toEqual({ before: 1, after: 0 });
    // At least all of c and b's quarter get another home.
    expect(keysMoved).toBeGreaterThan((40 + 30) / 250);
  });

  it("a region is lost: every engine there holds nothing", async () => {
    const { engines } = await ask({ kind: "lose-region", region: "c" });
    expect(engines.map(({ capacityWps }) => capacityWps.after)).toEqual([100, 100, 0]);
  });

  it("demand falls in one cluster: less is paid and weights follow", async () => {
    const { before, after, weights } = await ask({ kind: "demand", factor: 0.8, cluster: "b" });
    expect(after!.demandRps).toBeCloseTo(226, 9);
    expect(after!.expectedLatencyMs).toBeLessThan(before!.expectedLatencyMs);
    const away = weights.find(({ cluster, engine }) => cluster === "b" && engine === "engine-c")!;
    expect(away.weight.after).toBeLessThan(away.weight.before);
  });

  it("a replica's worth of capacity more gains at most what its worth says", async () => {
    const factor = 1.1;
    const inputs = inputsOf(await threeClusters());
    const free = { ...inputs, fleet: { ...inputs.fleet, policy: { ...inputs.fleet.policy, churnMs: 0 } } };
    const { before, after, engines } = whatIf(
      free,
      [{ kind: "capacity", factor, engine: "engine-b" }],
      null,
      BUDGET,
      CLOSED,
    );
    const { worthMs, capacityWps } = engines.find(({ engine }) => engine === "engine-b")!;
    const gainMs = (before!.objectiveMs - after!.objectiveMs) * 250;
    const added = capacityWps.after - capacityWps.before;
    expect(added).toBeCloseTo(10, 9);
    // Worth bounds the gain from above, and what the capacity is worth afterwards bounds it from below.
    expect(gainMs).toBeLessThanOrEqual(worthMs.before * added + 0.1);
    expect(gainMs).toBeGreaterThanOrEqual(worthMs.after * added - 0.1);
  });

  it("a new engine takes the work that is dearest elsewhere", async () => {
    const inputs = inputsOf(await threeClusters());
    const engine = { ...inputs.fleet.engines.get("engine-b")!, id: "engine-b2", url: "http://b2.example" };
    const { after, before, engines } = whatIf(inputs, [{ kind: "new-engine", engine }], null, BUDGET, CLOSED);
    expect(after!.expectedLatencyMs).toBeLessThan(0.7 * before!.expectedLatencyMs);
    expect(engines.find((each) => each.engine === "engine-b2")!.loadWps).toMatchObject({ before: 0 });
    expect(engines.find((each) => each.engine === "engine-b2")!.loadWps.after).toBeGreaterThan(50);
  });

  it("asks from the weights that are published, and leaves the inputs as they are", async () => {
    const inputs = inputsOf(await threeClusters());
    const copy = structuredClone(inputs);
    const previous = { ...plan(inputs, null, null, BUDGET, CLOSED).publication!, version: 4, epoch: 1 };
    const { keysMoved, before } = whatIf(inputs, [], previous, BUDGET, CLOSED);
    expect(keysMoved).toBe(0);
    expect(before!.objectiveMs).toBeCloseTo(394.92, 2);
    expect(inputs).toEqual(copy);
  });

  it.each([
    [{ kind: "drain", engine: "engine-x" }, "engine-x is not an engine; known: engine-a, engine-b, engine-c"],
    [{ kind: "lose-region", region: "x" }, "no engine is in region x; known: a, b, c"],
    [{ kind: "demand", factor: Number.NaN }, "a factor must be 0 or more, got NaN"],
    [{ kind: "demand", factor: 1, cluster: "x" }, "x is not a cluster; known: a, b, c"],
    [{ kind: "demand", factor: 1, class: "x" }, "x is not a class; known: chat"],
    [{ kind: "capacity", factor: -1 }, "a factor must be 0 or more, got -1"],
  ] as const)("%o is refused: %s", async (change, message) => {
    await expect(ask(change)).rejects.toThrow(message);
  });
});
