import type { ClusterSnapshot, SnapshotCell } from "@guidevane/core";
import { afterAll, describe, expect, it } from "vitest";
import { eventually, type Gateway, MODEL, publishedSnapshot, Whole } from "./whole.ts";

/** The whole loop: requests are demand, demand moves weights, weights move requests. */

const whole = new Whole();
afterAll(() => whole.stop());

/** Work units/s that each engine holds. A chat of 64 prompt and 16 output tokens is one unit. */
const CAPACITY_WPS = 40;

describe("demand that one engine can't take", () => {
  it("is seen by the control plane, moves the weights, and then the requests", async () => {
    const near = await whole.engine({ capacityWps: CAPACITY_WPS });
    const far = await whole.engine({ capacityWps: CAPACITY_WPS });
    const engines = {
      near: { url: near.url, capacityWps: CAPACITY_WPS },
      far: { url: far.url, capacityWps: CAPACITY_WPS, region: "b" },
    };
    // 400 ms away: more than an engine that is not nearly full can make one wait. Only on paper, so that its streams are
    // shorter than the plan takes them for, and placement by counting streams would send it more than its weight.
    whole.writeFleet(engines, { network: { defaultRttMs: 400 }, gateway: { placement: "home" } });
    const control = await whole.control();
    const gateway = await whole.gateway(control.url);
    await gateway.hasSnapshot();

    await eventually(async () => weightIn((await publishedSnapshot(control.url))?.cells[0], "near") === 1);
    const quiet = await send(gateway, 20, 20);
    expect(quiet.filter((engine) => engine === "near")).toHaveLength(20);

    // 60 a second on engines that hold 40: at least a third must go far in the end, however far that is.
    const load = new Load(gateway, 60);
    const published = new Map<number, ClusterSnapshot>();
    const watch = async () => {
      const snapshot = (await publishedSnapshot(control.url))!;
      published.set(snapshot.version, snapshot);
      return snapshot.cells[0]!;
    };
    await eventually(async () => weightIn(await watch(), "far") > 0.25, 30_000);
    const from = load.answers.length;
    await eventually(async () => {
      await watch();
      return load.answers.length >= from + 300;
    });
    await load.stop();

    for (const { cells, certificate } of published.values()) {
      expect(cells[0]!.demandRps).toBeLessThan(75);
      expect(certificate.gap).toBeGreaterThanOrEqual(-1e-9);
      expect(certificate.gap).toBeLessThan(0.05);
    }
    // Until the weights follow, what is beyond the one engine is sent away at once; after that nothing is.
    expect(load.answers.slice(0, from).filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
    expect(new Set(load.answers.slice(from).map(({ status }) => status))).toEqual(new Set([200]));
    // Each request against the weight in the snapshot that it says it was routed by.
    const known = load.answers.slice(from).filter(({ version }) => published.has(version));
    expect(known.length).toBeGreaterThan(200);
    const weights = known.map(({ version }) => weightIn(published.get(version)!.cells[0]!, "far"));
    const expected = weights.reduce((sum, weight) => sum + weight, 0);
    const variance = weights.reduce((sum, weight) => sum + weight * (1 - weight), 0);
    const wentFar = known.filter(({ engine }) => engine === "far").length;
    expect(Math.abs(wentFar - expected)).toBeLessThan(4.5 * Math.sqrt(variance));
  }, 60_000);
});

function weightIn(cell: SnapshotCell | undefined, engine: string): number {
  return cell?.weights[cell.engines.indexOf(engine)] ?? 0;
}

/** So many requests one after another at a rate; the engines that answered. */
async function send(gateway: Gateway, count: number, rateRps: number): Promise<(string | null)[]> {
  const load = new Load(gateway, rateRps);
  await eventually(async () => load.answers.length >= count);
  await load.stop();
  return load.answers.slice(0, count).map(({ engine }) => engine);
}

interface Seen {
  readonly status: number;
  readonly engine: string | null;
  readonly version: number;
}

/** Requests at an even rate, whether or not the ones before have been answered: an open loop. */
class Load {
  readonly answers: Seen[] = [];
  readonly #timer: NodeJS.Timeout;
  readonly #open = new Set<Promise<void>>();
  readonly #gateway: Gateway;
  #sent = 0;

  constructor(gateway: Gateway, rateRps: number) {
    this.#gateway = gateway;
    const startMs = performance.now();
    this.#timer = setInterval(() => {
      // What is due by now, so that a late timer does not lower the rate.
      const due = Math.floor(((performance.now() - startMs) / 1000) * rateRps);
      while (this.#sent < due) this.#send(this.#sent++);
    }, 5);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
  }

  #send(at: number): void {
    const body = { model: MODEL, messages: [{ role: "user", content: `request ${at}` }], max_tokens: 16 };
    const one = this.#gateway.post(body).then(({ status, headers }) => {
      const version = Number(headers.get("x-guidevane-snapshot"));
      this.answers.push({ status, engine: headers.get("x-guidevane-engine"), version });
    });
    this.#open.add(one);
    void one.finally(() => this.#open.delete(one));
  }
}
