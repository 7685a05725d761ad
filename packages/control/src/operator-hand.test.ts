import { GuidevaneError } from "@guidevane/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OperatorAnswer } from "./admin-operator.ts";
import { arrived, demand, errorOf, Harness, healthOf, metrics, post, SECOND, until } from "./testing/harness.ts";

let test: Harness;
beforeEach(() => {
  test = new Harness();
});
afterEach(() => test.close());

const TICK_MS = 5 * SECOND;

async function operator(url: string): Promise<OperatorAnswer> {
  return (await (await fetch(`${url}/v1/operator`)).json()) as OperatorAnswer;
}

/** Lets one tick fall due and resolves when it has solved. */
async function tick(): Promise<void> {
  const next = test.solver.next();
  test.clock.advance(TICK_MS);
  await next;
}

const published = async (url: string) =>
  Number(/guidevane_publish_total\{result="published"\} (\d+)/.exec(await metrics(url))?.[1] ?? 0);
const held = async (url: string) =>
  Number(/guidevane_publish_total\{result="(?:frozen|advise)"\} (\d+)/.exec(await metrics(url))?.[1] ?? 0);

describe("a freeze", () => {
  it("lets ticks go on solving and publishes nothing, until it is lifted", async () => {
    const url = await test.started();
    const answer = (await (await post(`${url}/v1/freeze`, { on: true })).json()) as OperatorAnswer;
    expect(answer).toMatchObject({ frozen: true, rolledBackTo: null, version: 1, advise: false });
    for (let ticks = 1; ticks <= 2; ticks++) {
      await tick();
      await until(async () => (await held(url)) === ticks);
    }
    expect([await published(url), test.store.stored?.version]).toEqual([1, 1]);
    expect((await operator(url)).certified).toEqual({
      at: new Date(test.clock.wallMs()).toISOString(),
      gapMs: null,
      gap: null,
      why: "nothing was published before",
    });
    expect(test.logger.warnings).toEqual([]);

    const solving = test.solver.next();
    await post(`${url}/v1/freeze`, { on: false });
    test.clock.advance(TICK_MS);
    await solving;
    await until(async () => (await operator(url)).version === 2);
    expect([await published(url), (await operator(url)).frozen]).toEqual([2, false]);
  });

  it("answers when a publication that was under way is done, and names its version", async () => {
    const url = await test.started();
    const going = Promise.withResolvers<void>();
    const put = test.store.put.bind(test.store);
    const putBegins = new Promise<void>((begun) => {
      test.store.put = async (publication, expected) => {
        begun();
        await going.promise;
        return put(publication, expected);
      };
    });
    await tick();
    await putBegins;
    const frozen = post(`${url}/v1/freeze`, { on: true });
    await until(async () => (await operator(url)).frozen);
    going.resolve();
    expect(await (await frozen).json()).toMatchObject({ frozen: true, version: 2 });
    expect(test.store.stored?.version).toBe(2);
  });

  it("holds across a restart, and is refused what is no yes or no", async () => {
    let url = await test.started();
    await post(`${url}/v1/freeze`, { on: true });
    expect(test.store.operator).toEqual({ engines: {}, frozen: true });
    expect(await errorOf(await post(`${url}/v1/freeze`, { on: "yes" }))).toMatchObject({ status: 400 });
    await test.close();
    url = await test.start();
    expect(await operator(url)).toMatchObject({ frozen: true, version: 1 });
    await until(async () => (await held(url)) === 1);
    expect(test.store.stored?.version).toBe(1);
  });

  it("comes too late for no tick: one that solves while it is said does not publish", async () => {
    const url = await test.started();
    let release = () => {};
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    test.solver.beforeAnswer = () => waiting;
    await tick();
    await post(`${url}/v1/freeze`, { on: true });
    release();
    await until(async () => (await held(url)) === 1);
    expect(test.store.stored?.version).toBe(1);
  });
});

describe("a roll back", () => {
  it("publishes the older weights as a new version, and freezes on it", async () => {
    const url = await test.started();
    const first = test.store.stored!;
    test.e2Status = 503;
    const gone = () => test.store.stored!.clusters.get("east")!.cells[0]!.weights[1] === 0;
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "dead" && gone());
    await post(`${url}/v1/demand`, demand(1, 1));
    const answer = (await (await post(`${url}/v1/rollback`, { version: 1 })).json()) as OperatorAnswer;
    const now = test.store.stored!;
    expect(answer).toMatchObject({ frozen: true, rolledBackTo: 1, version: now.version });
    expect(now.version).toBeGreaterThan(first.version + 1);
    expect(now.why).toBe("an operator rolled back to version 1");
    for (const [cluster, { cells }] of now.clusters) expect(cells).toEqual(first.clusters.get(cluster)!.cells);
    // A gateway has come since then, and the snapshot says so.
    expect([...first.clusters.values()].map(({ gateways }) => gateways)).toEqual([0, 0]);
    expect([...now.clusters.values()].map(({ gateways }) => gateways)).toEqual([1, 0]);
    const served = (await (await fetch(`${url}/v1/snapshot?cluster=east`)).json()) as { version: number };
    expect(served.version).toBe(now.version);
    await tick();
    await until(async () => (await held(url)) === 1);
    expect(test.store.stored!.version).toBe(now.version);
    await post(`${url}/v1/freeze`, { on: false });
    expect(await operator(url)).toMatchObject({ frozen: false, rolledBackTo: null });
  });

  it.each([
    ["a version that is not kept", { version: 9 }, 404, "version 9 is not kept; kept: 1"],
    ["no version", { version: "1" }, 400, 'version must be a whole number above 0 (got "1")'],
  ])("is refused %s", async (_, body, status, says) => {
    const url = await test.started();
    const error = await errorOf(await post(`${url}/v1/rollback`, body));
    expect([error.status, error.message]).toEqual([status, says]);
    expect(await operator(url)).toMatchObject({ frozen: false });
  });

  it("is refused a version that is damaged in the store, and freezes nothing", async () => {
    const url = await test.started();
    test.store.failGetVersion = new GuidevaneError("store_unreadable", "1-a/problem.json.gz: SHA-256 differs");
    const error = await errorOf(await post(`${url}/v1/rollback`, { version: 1 }));
    expect(error).toEqual({
      status: 409,
      code: "version_damaged",
      message: "version 1 can't be read: 1-a/problem.json.gz: SHA-256 differs",
    });
    expect(await operator(url)).toMatchObject({ frozen: false, version: 1 });
  });

  it("is refused when an engine of it is gone, or the verifier finds a fault, and freezes nothing", async () => {
    const url = await test.started();
    const [east] = test.store.kept[0]!.clusters.values();
    east!.cells[0]!.engines[0] = "gone";
    const error = await errorOf(await post(`${url}/v1/rollback`, { version: 1 }));
    expect([error.status, error.code]).toEqual([409, "cannot_roll_back"]);
    expect(error.message).toBe("version 1: engine gone is not in the fleet any more");
    east!.cells[0]!.engines[0] = "e1";
    test.solver.verdict = { kind: "faults", faults: ["gap is 3, not 2"] };
    const refused = await errorOf(await post(`${url}/v1/rollback`, { version: 1 }));
    expect(refused.message).toBe("version 1: gap is 3, not 2");
    expect([test.store.stored!.version, (await operator(url)).frozen]).toEqual([1, false]);
  });
});

describe("a pin", () => {
  const untilIn = (ms: number) => new Date(test.clock.wallMs() + ms).toISOString();
  const pin = (more: object = {}) => ({
    cluster: "east",
    class: "chat",
    weights: { e1: 0.3, e2: 0.7 },
    until: untilIn(60 * SECOND),
    ...more,
  });

  it("B150: is planned with until it expires, and kept in the store until then", async () => {
    const url = await test.started();
    const set = pin();
    expect(((await (await post(`${url}/v1/pins`, set)).json()) as OperatorAnswer).pins).toEqual([set]);
    expect(test.store.operator.pins).toEqual([set]);
    await tick();
    expect(test.solver.seen.at(-1)!.pins).toEqual([set]);
    test.clock.advance(60 * SECOND);
    await test.roundsUntil(async () => {
      await arrived(url);
      return test.store.operator.pins === undefined;
    });
    await until(async () => test.logger.lines.some(({ message }) => message === "operator: pin expired"));
    expect((await operator(url)).pins).toEqual([]);
    expect(test.solver.seen.at(-1)!.pins).toEqual([]);
  });

  it("takes the place of the cell's last one, and is lifted by null", async () => {
    const url = await test.started();
    await post(`${url}/v1/pins`, pin());
    await post(`${url}/v1/pins`, pin({ cluster: "west" }));
    await post(`${url}/v1/pins`, pin({ weights: { e2: 1 } }));
    expect((await operator(url)).pins.map(({ cluster, weights }) => [cluster, weights])).toEqual([
      ["west", { e1: 0.3, e2: 0.7 }],
      ["east", { e2: 1 }],
    ]);
    await post(`${url}/v1/pins`, { cluster: "west", class: "chat", weights: null });
    expect((await operator(url)).pins).toHaveLength(1);
  });

  it.each([
    [
      "weights that do not sum to 1",
      { weights: { e1: 0.3, e2: 0.6 } },
      "weights: must sum to 1 (got 0.8999999999999999)",
    ],
    [
      "an engine that is not there",
      { weights: { e1: 0.3, e9: 0.7 } },
      'weights.e9: is not an engine of the fleet file; known: e1, e2 (got "e9")',
    ],
    [
      "an engine that may not serve the class",
      { class: "near", weights: { e2: 1 } },
      "weights.e2: may not serve near: is 100 ms away, 50 ms allowed (got 1)",
    ],
    ["a weight below 0", { weights: { e1: -0.5, e2: 1.5 } }, "weights.e1: "],
    [
      "an unknown cluster",
      { cluster: "north" },
      'cluster: is not a cluster of the fleet file; known: east, west (got "north")',
    ],
    ["an unknown class", { class: "x" }, 'class: is not a class of the fleet file; known: chat, near (got "x")'],
    ["an end in the past", { until: "2001-01-01T00:00:00Z" }, "until: is not after now, 2023-"],
    ["no end", { until: undefined }, "until: is required"],
    ["an end that is no instant", { until: "tomorrow" }, "until: "],
  ])("is refused with %s, naming the value", async (_, change, says) => {
    test.classesMore = ", near: { model: m, needs: { networkMs: 50 } }";
    const url = await test.started();
    const error = await errorOf(await post(`${url}/v1/pins`, pin(change)));
    expect([error.status, error.code]).toEqual([400, "bad_pin"]);
    expect(error.message).toContain(says);
    expect(test.store.operator.pins).toBeUndefined();
  });

  it("is refused on an engine that is drained", async () => {
    const url = await test.started();
    await post(`${url}/v1/engines/e2/drain`, { on: true });
    const error = await errorOf(await post(`${url}/v1/pins`, pin()));
    expect(error.message).toBe("weights.e2: is draining (got 0.7)");
  });
});

describe("advice", () => {
  it("solves and verifies every tick, says so, and publishes nothing", async () => {
    const solving = test.solver.next();
    const url = await test.start({ advise: true });
    await solving;
    await until(async () => (await held(url)) === 1);
    expect(test.store.stored).toBeNull();
    expect(await operator(url)).toMatchObject({ advise: true, version: null });
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect(test.logger.lines.some(({ message }) => message.startsWith("advice: "))).toBe(true);
    const error = await errorOf(await post(`${url}/v1/rollback`, { version: 1 }));
    expect([error.status, error.code]).toEqual([409, "advise"]);
  });
});
