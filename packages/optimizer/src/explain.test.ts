import { readFileSync } from "node:fs";
import type { Publication } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { explain } from "./explain.ts";
import type { EngineExplanation } from "./explain-engine.ts";
import { EXAMPLE_PROFILE, fleetOf, inputsOf, threeClusters } from "./fleet.fixture.ts";
import { plan } from "./plan.ts";
import type { PlanInputs } from "./plan-types.ts";
import { showExplanation } from "./show-explanation.ts";

function planned(inputs: PlanInputs, evenLoadMs = 0): Publication {
  return plan(inputs, null, null, { deadlineMs: null }, { evenLoadMs }).publication!;
}

/** Two engines of 100 whose only delay is one curve of the time to the first token, `far` 120 ms away. */
async function twoEngines(knots: string, demandRps: number, policy: string, more = "") {
  const engine = (id: string) =>
    `${id}: { url: "http://${id}.example", region: ${id}, models: [m], profile: p, capacityWps: 100 }`;
  const fleet = await fleetOf(
    `
clusters: { a: { region: near } }
engines: { ${engine("near")}, ${engine("far")} }
classes: { chat: { model: m, work: 1.0 } ${more} }
network: { file: rtt.csv }
profiles: { p: { file: p.yaml } }
demandRps: { a: { chat: ${demandRps} } }
policy: ${policy}
`,
    {
      "rtt.csv": "from,to,rtt_ms\nnear,near,0\nnear,far,120\n",
      "p.yaml": `
profile: p
reference: { promptTokens: 100, outputTokens: 1 }
work: { prefillPerKtok: 9, decodePerKtok: 100 }
prefillMsPerTok: 0
loop: open
capacityWps: 100
ttftMs: ${knots}
tbotMs: [[0, 0], [1, 0]]
`,
    },
  );
  return inputsOf(fleet);
}

function worths(engines: readonly EngineExplanation[]): Record<string, number> {
  return Object.fromEntries(engines.map(({ engine, worthMs }) => [engine, Math.round(worthMs)]));
}

const WALL = "{ headroom: 0, headroomMs: 0 }";
const KNOTS = "[[0, 0], [0.5, 50], [1, 250]]";

describe("an explanation", () => {
  it("adds up to the demand price for engines in use, and names what the others lack", async () => {
    const { engines, demandPriceMs, sentence, demandPriceRangeMs } = explain(
      planned(inputsOf(await threeClusters())),
      "b",
      "chat",
    );
    expect(demandPriceMs).toBeCloseTo(2183.333, 3);
    expect(demandPriceRangeMs).toBeNull();
    expect(engines.map(({ engine }) => engine)).toEqual(["engine-b", "engine-c", "engine-a"]);
    const [home, away, unused] = engines;
    for (const [one, network, wait, inflicted] of [
      [home!, 2, 190.667, 1790.667],
      [away!, 60, 161.667, 1761.667],
    ] as const) {
      expect(one.addends).toMatchObject({ networkMs: network, capacityPriceMs: 0, stabilityMs: 0 });
      expect(one.addends.serviceMs).toBeCloseTo(200, 9);
      expect(Math.abs(one.addends.ownWaitMs - wait)).toBeLessThan(0.5);
      expect(one.addends.ownWaitMs + one.addends.inflictedMs).toBeCloseTo(wait + inflicted, 2);
      expect(one.sumMs).toBeCloseTo(demandPriceMs, 6);
      expect(one).toMatchObject({ isUsed: true, binds: "none" });
    }
    // Engine a: 80 + 200 + 2000 against 2183.33.
    expect(unused!.reducedCostMs).toBeCloseTo(96.667, 2);
    expect(unused).toMatchObject({ isUsed: false, weight: 0, binds: "cost" });
    expect(sentence).toMatch(
      /^b sends chat 74\.61 % to engine-b, 25\.39 % to engine-c: .* 2183\.33 ms .* engine-a, .* 96\.67 ms cheaper\.$/,
    );
  });

  it("says in one sentence why an engine has its weight, or none", async () => {
    const publication = planned(inputsOf(await threeClusters()));
    expect(explain(publication, "b", "chat", "engine-c").sentence).toMatch(
      /^engine-c gets 25\.39 % of b's chat: 60\.00 ms of network \+ 200\.00 ms of service \+ .* = 2183\.33 ms, the demand price/,
    );
    expect(explain(publication, "b", "chat", "engine-a").sentence).toMatch(
      /^engine-a gets nothing .* it would have to be 96\.67 ms cheaper\.$/,
    );
  });

  it("tells of a faster engine that is spared for what it would inflict", async () => {
    const inputs = await twoEngines("[[0, 0], [1, 400]]", 80, WALL);
    const far = explain(planned(inputs), "a", "chat", "far").engines[0]!;
    // Loads of 47.5 and 32.5: the marginals 8y differ by the 120 ms of network, the waits 4y by 60 only.
    expect(far.faster).toMatchObject({ engine: "near" });
    expect(far.faster!.byMs).toBeCloseTo(60, 1);
    expect(far.faster!.inflictedMs).toBeCloseTo(4 * 47.5, 1);
  });

  it("shows the lowest of a range of prices, with one fewer and one more", async () => {
    const { demandPriceMs, demandPriceRangeMs, engines } = explain(
      planned(await twoEngines(KNOTS, 100, WALL)),
      "a",
      "chat",
    );
    expect(demandPriceMs).toBeCloseTo(220, 6);
    expect(demandPriceRangeMs!.oneFewer).toBeCloseTo(220, 6);
    expect(demandPriceRangeMs!.oneMore).toBeCloseTo(250, 6);
    expect(engines.map(({ binds }) => binds)).toEqual(["knot", "knot"]);
    expect(worths(engines)).toEqual({ near: 85, far: 25 });
    const unique = explain(planned(await twoEngines(KNOTS, 90, WALL)), "a", "chat");
    expect(unique.demandPriceMs).toBeCloseTo(200, 6);
    expect(unique.demandPriceRangeMs).toBeNull();
    expect(worths(unique.engines)).toEqual({ near: 75, far: 16 });
  });

  it("prices headroom and full engines apart from congestion", async () => {
    const flat = "[[0, 0], [1, 0]]";
    const inside = explain(planned(await twoEngines(flat, 194, "{ headroom: 0.06, headroomMs: 6000 }")), "a", "chat");
    expect(inside.engines[1]!.binds).toBe("headroom");
    expect(inside.engines[1]!.addends.capacityPriceMs + 120).toBeCloseTo(inside.engines[0]!.addends.capacityPriceMs, 3);
    expect(inside.whyShed).toBeNull();
    const over = explain(planned(await twoEngines(flat, 210, WALL)), "a", "chat");
    expect(over.engines.map(({ binds }) => binds)).toEqual(["capacity", "capacity"]);
    expect(over.whyShed).toMatch(/^4\.76 % of chat is shed: every engine that may serve it is full/);
    expect(over.demandPriceMs).toBeCloseTo(60_000, 6);
  });

  it("says that nothing can be served where no engine has capacity", async () => {
    const { fleet } = await twoEngines(KNOTS, 50, WALL);
    const engines = { near: { readyReplicas: 0 }, far: { adminState: "draining" as const } };
    const { whyShed, engines: shown } = explain(planned(inputsOf(fleet, { engines })), "a", "chat");
    expect(whyShed).toBe("100.00 % of chat is shed: no engine that may serve it has any capacity");
    expect(shown.map(({ binds }) => binds)).toEqual(["out", "out"]);
  });

  it("adds up within 1e-6 on a fleet of many cells, at first and when moves are priced", async () => {
    const places = ["p", "q", "r", "s", "t"];
    const fleet = await fleetOf(
      `
clusters: { ${places.map((place) => `c${place}: { region: ${place} }`).join(", ")} }
engines: { ${places.flatMap((place, at) => [1, 2].map((copy) => `e${place}${copy}: { url: "http://${place}${copy}.example", region: ${place}, models: [m], profile: p, capacityWps: ${20 + 9 * at * copy} }`)).join(", ")} }
classes: { long: { model: m, work: 3, priority: 5 }, short: { model: m, work: 0.4 } }
profiles: { p: { file: p.yaml } }
network: { defaultRttMs: 70 }
demandRps: { ${places.map((place, at) => `c${place}: { long: ${5 + 2 * at}, short: ${90 - 9 * at} }`).join(", ")} }
`,
      { "p.yaml": EXAMPLE_PROFILE },
    );
    const first = planned(inputsOf(fleet), 0.5);
    const moved = plan(
      inputsOf(fleet, { demandRps: { cp: { long: 11 }, ct: { short: 20 } } }),
      { ...first, version: 1, epoch: 1 },
      null,
      { deadlineMs: null },
    ).publication!;
    let stable = 0;
    for (const publication of [first, moved]) {
      for (const { cluster, cells } of publication.clusters.values()) {
        for (const cell of cells) {
          const { engines, demandPriceMs } = explain(publication, cluster, cell.class);
          expect(engines).toHaveLength(10);
          for (const each of engines) {
            const { addends, sumMs, reducedCostMs, isUsed } = each;
            expect(Object.values(addends).reduce((sum, value) => sum + value, 0)).toBeCloseTo(sumMs, 9);
            if (isUsed) expect(Math.abs(reducedCostMs)).toBeLessThan(1e-6 * demandPriceMs);
            else expect(reducedCostMs).toBeGreaterThan(-1e-6 * demandPriceMs);
            for (const part of Object.values(addends)) expect(part).toBeGreaterThanOrEqual(-1e-9);
            if (isUsed && addends.stabilityMs > 0) stable++;
          }
        }
      }
    }
    expect(stable).toBeGreaterThan(0);
  });

  it("says that an operator set a weight, and what it costs", async () => {
    const until = "2030-01-01T00:00:00.000Z";
    const pins = [{ cluster: "b", class: "chat", weights: { "engine-b": 0.5, "engine-a": 0.5 }, until }];
    const fleet = await threeClusters();
    const inputs = { ...inputsOf(fleet, { demandRps: { a: { chat: 30 } } }), pins };
    const { engines, pinnedUntil, sentence } = explain(planned(inputs), "b", "chat");
    expect(pinnedUntil).toBe(until);
    expect(engines.filter(({ isUsed }) => isUsed).map(({ binds }) => binds)).toEqual(["pin", "pin"]);
    expect(sentence).toContain(`by an operator's word until ${until}`);
    expect(explain(planned(inputs), "b", "chat", "engine-a").sentence).toMatch(
      /by an operator's word until .*; left alone/,
    );
  });

  it("is refused for names that the publication lacks, and says which there are", async () => {
    const publication = planned(inputsOf(await threeClusters()));
    expect(() => explain(publication, "x", "chat")).toThrow("x is not a cluster; known: a, b, c");
    expect(() => explain(publication, "a", "talk")).toThrow("talk is not a class of a; known: chat");
    expect(() => explain(publication, "a", "chat", "engine-z")).toThrow(
      "engine-z is not an engine; known: engine-a, engine-b, engine-c",
    );
    const far = planned(
      await twoEngines(KNOTS, 10, WALL, ", quick: { model: m, work: 1.0, needs: { networkMs: 50 } }"),
    );
    expect(() => explain(far, "a", "quick", "far")).toThrow("far may not serve quick from a; those that may: near");
  });
});

describe("an explanation as text", () => {
  it("is a table whose rows add up as printed", async () => {
    const text = showExplanation(explain(planned(inputsOf(await threeClusters())), "b", "chat"));
    const rows = text.split("\n").filter((line) => /^engine-[abc] /.test(line));
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      const [, , , ...figures] = row.trim().split(/\s+/);
      const numbers = figures.map(Number);
      const sum = numbers.slice(0, 6).reduce((total, each) => total + Math.round(each * 100), 0);
      expect(sum).toBe(Math.round(numbers[6]! * 100));
    }
    expect(text).toContain("b chat, version 0: 120.000 requests/s, 0.00 % shed; ms a request\ndemand price 2183.33\n");
    expect(text.endsWith("cheaper.\n")).toBe(true);
    // The same table teaches how to read one.
    const page = readFileSync(new URL("../../../docs/optimizer.md", import.meta.url), "utf8");
    for (const row of rows) expect(page).toContain(`    ${row}\n`);
  });
});
