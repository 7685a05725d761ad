import type { ClusterSnapshot } from "@guidevane/core";
import type { EmulatedEngine } from "@guidevane/simulator";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Offer, ScriptedControl } from "./scripted-control.ts";
import { type Answer, eventually, type Gateway, MODEL, publishedSnapshot, Whole } from "./whole.ts";

/** What breaks, and what a client sees of it: an engine, the control plane, a snapshot. */

const chat = (content: string, rest: Record<string, unknown> = {}) => ({
  model: MODEL,
  messages: [{ role: "user" as const, content }],
  max_tokens: 4,
  ...rest,
});

describe("an engine that is killed", () => {
  let whole: Whole;
  let engines: Readonly<Record<string, EmulatedEngine>>;
  let gateway: Gateway;

  beforeEach(async () => {
    whole = new Whole();
    engines = { one: await whole.engine(), two: await whole.engine() };
    // Half of all requests lose their engine at once, and no traffic before has earned that many retries: no more than 10 are held.
    const rest = { gateway: { retry: { startTokens: 10 } } };
    whole.writeFleet({ one: { url: engines.one!.url }, two: { url: engines.two!.url } }, rest);
    const control = await whole.control();
    gateway = await whole.gateway(control.url);
    await gateway.hasSnapshot();
  });
  afterEach(() => whole.stop());

  it("in the middle of a stream breaks that stream, and the next requests go elsewhere without an error", async () => {
    const { data: stream, response } = await gateway.client.chat.completions
      .create({ ...chat("long"), max_tokens: 5000, stream: true })
      .withResponse();
    const name = response.headers.get("x-guidevane-engine")!;
    let tokens = 0;
    const read = async () => {
      for await (const chunk of stream) {
        if (chunk.choices[0]?.delta.content && ++tokens === 5) await engines[name]!.kill();
      }
    };
    await expect(read()).rejects.toThrow();
    expect(tokens).toBeGreaterThanOrEqual(5);

    // No more at once than one engine may hold: once the control plane knows of one only, that is the limit.
    const after: Answer[] = [];
    for (let group = 0; group < 4; group++) {
      const calls = Array.from({ length: 10 }, (_, at) => gateway.post(chat(`next ${group} ${at}`)));
      after.push(...(await Promise.all(calls)));
    }
    expect(after.map(({ status }) => status)).toEqual(after.map(() => 200));
    expect(new Set(after.map(({ headers }) => headers.get("x-guidevane-engine")))).toEqual(
      new Set([name === "one" ? "two" : "one"]),
    );
  });

  it("with requests in it whose answers have not begun is not seen by any client", async () => {
    engines.one!.control({ hang: true });
    const calls = Array.from({ length: 14 }, (_, at) => gateway.post(chat(`during ${at}`)));
    await eventually(async () => engines.one!.counts.inFlight > 2);
    await engines.one!.kill();
    const answers = await Promise.all(calls);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers.filter(({ headers }) => headers.get("x-guidevane-reason") === "retry").length).toBeGreaterThan(2);
  });
});

describe("a control plane that is killed", () => {
  const whole = new Whole();
  afterAll(() => whole.stop());

  it("is not noticed by requests, then or after a gateway's restart, and takes up its work again", async () => {
    const engine = await whole.engine();
    whole.writeFleet({ one: { url: engine.url } });
    const first = await whole.control();
    const gateway = await whole.gateway(first.url);
    await gateway.hasSnapshot();

    let stop = false;
    const statuses: number[] = [];
    const loop = async (name: string) => {
      for (let at = 0; !stop; at++) statuses.push((await gateway.post(chat(`${name} ${at}`))).status);
    };
    const running = ["x", "y", "z"].map(loop);
    const killed = first.program.end("SIGKILL");
    await killed;
    const before = statuses.length;
    await eventually(async () => statuses.length > before + 60);
    stop = true;
    await Promise.all(running);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);

    // A new gateway process knows only what the old one left on disk.
    await gateway.program.end();
    const again = await whole.gateway(first.url);
    const answer = await again.post(chat("from disk"));
    expect(answer.status).toBe(200);
    expect(Number(answer.headers.get("x-guidevane-snapshot"))).toBeGreaterThan(0);

    const second = await whole.control();
    await eventually(async () => (await publishedSnapshot(second.url)) !== null);
    const snapshot = (await publishedSnapshot(second.url))!;
    expect(snapshot.version).toBeGreaterThanOrEqual(Number(answer.headers.get("x-guidevane-snapshot")));
  });
});

describe("a bad snapshot", () => {
  const whole = new Whole();
  let scripted: ScriptedControl;
  let gateway: Gateway;
  let good: ClusterSnapshot;
  let version: number;

  beforeAll(async () => {
    const engine = await whole.engine();
    whole.writeFleet({ one: { url: engine.url } });
    const control = await whole.control();
    await eventually(async () => (await publishedSnapshot(control.url)) !== null);
    good = (await publishedSnapshot(control.url))!;
    await control.program.end();

    scripted = await ScriptedControl.start();
    whole.onStop(() => scripted.stop());
    scripted.offerSnapshot(good);
    gateway = await whole.gateway(scripted.url);
    await gateway.hasSnapshot();
    version = good.version;
  });
  afterAll(() => whole.stop());

  const changed = (change: (snapshot: ClusterSnapshot) => void): Offer => {
    const snapshot = structuredClone({ ...good, version: version + 1 });
    change(snapshot);
    return { json: JSON.stringify(snapshot), tag: `${snapshot.epoch}-${snapshot.version}` };
  };
  const cases: readonly [string, string, () => Offer][] = [
    [
      "whose weights do not sum to 1",
      "schema",
      () =>
        changed(({ cells }) => {
          cells[0]!.weights[0] = 0.5;
        }),
    ],
    [
      "that routes to an engine it does not define",
      "schema",
      () =>
        changed((snapshot) => {
          snapshot.engines = {};
        }),
    ],
    [
      "of another cluster",
      "cluster",
      () =>
        changed((snapshot) => {
          snapshot.cluster = "z";
          for (const cell of snapshot.cells) cell.cluster = "z";
        }),
    ],
    [
      "whose version goes back",
      "version",
      () =>
        changed((snapshot) => {
          snapshot.version = version - 1;
        }),
    ],
    [
      "whose epoch goes back",
      "version",
      () =>
        changed((snapshot) => {
          snapshot.epoch -= 1;
          snapshot.version = version + 100;
        }),
    ],
    ["that was cut off", "schema", () => ({ json: JSON.stringify(good).slice(0, -10), tag: "9-9" })],
    ["with a wrong checksum", "checksum", () => ({ ...changed(() => {}), checksum: "0".repeat(64) })],
  ];

  it.each(cases)(
    "%s is refused and counted; the one before stays, and a good one after it is taken",
    async (_what, reason, offer) => {
      const before = await refusals(gateway, reason);
      scripted.offer(offer());
      await eventually(async () => (await refusals(gateway, reason)) > before);
      const during = await gateway.post(chat("during"));
      expect([during.status, during.headers.get("x-guidevane-snapshot")]).toEqual([200, String(version)]);

      version += 2;
      scripted.offerSnapshot({ ...good, version });
      await eventually(
        async () => (await gateway.post(chat("after"))).headers.get("x-guidevane-snapshot") === String(version),
      );
    },
  );
});

/** How many snapshots the gateway has refused for this reason. */
async function refusals(gateway: Gateway, reason: string): Promise<number> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return Number(
    new RegExp(`^guidevane_snapshot_refused_total\\{reason="${reason}"\\} (\\d+)$`, "m").exec(text)?.[1] ?? 0,
  );
}
