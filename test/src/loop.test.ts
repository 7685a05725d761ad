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
    // 400 ms away: more than an engine that is not nearly full can make one wait.
    whole.writeFleet(engines, { network: { defaultRttMs: 400 } });
    const control = await whole.control();
    const gateway = await whole.gateway(control.url);
    await gateway.hasSnapshot();

    await eventually(async () => (await weightOf("near", control.url)) === 1);
    const quiet = await send(gateway, 20, 20);
    expect(quiet.filter((engine) => engine === "near")).toHaveLength(20);

    // 60 a second on engines that hold 40: at least a third must go far, however far that is.
    const load = new Load(gateway, 60);
    await eventually(async () => (await weightOf("far", control.url)) > 0.3, 25_000);
    const snapshot = (await publishedSnapshot(control.url))!;
    const cell = snapshot.cells[0]!;
    await eventually(async () => load.newest?.version === snapshot.version || load.versions.has(snapshot.version));
    const tick = load.answers.length;
    await eventually(async () => load.answers.length > tick + 240);
    await load.stop();

    expect(cell.demandRps).toBeGreaterThan(30);
    expect(snapshot.certificate.gap).toBeGreaterThanOrEqual(-1e-9);
    expect(snapshot.certificate.gap).toBeLessThan(0.05);
    const statuses = new Set(load.answers.map(({ status }) => status));
    expect([...statuses]).toEqual([200]);
    // By the weights of the snapshot that each request itself was routed by.
    const late = load.answers.slice(tick);
    const shareFar = late.filter(({ engine }) => engine === "far").length / late.length;
    const weight = await weightOf("far", control.url);
    const standardError = Math.sqrt((weight * (1 - weight)) / late.length);
    expect(Math.abs(shareFar - weight)).toBeLessThan(5 * standardError + 0.05);
  }, 60_000);
});

async function weightOf(engine: string, controlUrl: string): Promise<number> {
  const cell = (await publishedSnapshot(controlUrl))?.cells[0];
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
  readonly versions = new Set<number>();
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

  get newest(): Seen | undefined {
    return this.answers.at(-1);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
  }

  #send(at: number): void {
    const body = { model: MODEL, messages: [{ role: "user", content: `request ${at}` }], max_tokens: 16 };
    const one = this.#gateway.post(body).then(({ status, headers }) => {
      const version = Number(headers.get("x-guidevane-snapshot"));
      this.versions.add(version);
      this.answers.push({ status, engine: headers.get("x-guidevane-engine"), version });
    });
    this.#open.add(one);
    void one.finally(() => this.#open.delete(one));
  }
}
