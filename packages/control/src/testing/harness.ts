import type { ServerResponse } from "node:http";
import { type DemandReport, type Fleet, ManualClock } from "@guidevane/core";
import type { EngineAnswer } from "../engine-answers.ts";
import { type RunningControl, startControl } from "../start-control.ts";
import { testFleet } from "./fleet.ts";
import { serve, type TestServer } from "./http.ts";
import { MemoryStore, TestLogger, TestSolver } from "./parts.ts";

export const SECOND = 1000;

/**
 * A control plane on a free port with two engines behind it, in memory but for its sockets: time, solver and store are
 * the test's. New before each test, stopped after it.
 */
export class Harness {
  readonly clock = new ManualClock();
  readonly store = new MemoryStore();
  readonly solver = new TestSolver();
  readonly logger = new TestLogger();
  /** What the engines answer to their probes, and what e2 adds to its metrics. */
  e1Status = 200;
  e2Status = 200;
  e2Metrics = "";
  /** More lines of the fleet file. */
  fleetMore = "";
  /** More classes, beginning with a comma. */
  classesMore = "";
  ports = { e1: 0, e2: 0 };
  control: RunningControl | undefined;
  #servers: TestServer[] = [];

  async start(
    more: { adminHost?: string; adminToken?: string; adminPort?: number; advise?: boolean } = {},
  ): Promise<string> {
    const e1 = await serve((request, response) => respond(request.url, this.e1Status, "", response));
    const e2 = await serve((request, response) => respond(request.url, this.e2Status, this.e2Metrics, response));
    this.#servers.push(e1, e2);
    this.ports = { e1: e1.port, e2: e2.port };
    this.control = await startControl({
      fleet: await this.fleet(),
      store: this.store,
      adminHost: "127.0.0.1",
      adminPort: 0,
      logger: this.logger,
      clock: this.clock,
      random: () => 0.5,
      solver: this.solver,
      ...more,
    });
    return this.control.adminUrl;
  }

  /** The fleet file as it stands now. */
  fleet(engines = ""): Promise<Fleet> {
    return testFleet(this.ports, this.fleetMore, this.classesMore, engines);
  }

  /** Starts and waits for the first publication, as a gateway would. */
  async started(): Promise<string> {
    const url = await this.start();
    const reply = await fetch(`${url}/v1/snapshot?cluster=east&wait=30`);
    await reply.arrayBuffer();
    if (reply.status !== 200) throw new Error(`no snapshot came: HTTP ${reply.status}`);
    return url;
  }

  /** Lets probe rounds fall due one after another until the condition holds. */
  async roundsUntil(condition: () => Promise<boolean>): Promise<void> {
    for (let rounds = 0; !(await condition()); rounds++) {
      if (rounds > 1000) throw new Error("the condition never held");
      this.clock.advance(100);
    }
  }

  async close(): Promise<void> {
    await this.control?.stop();
    for (const server of this.#servers) await server.close();
  }
}

function respond(url: string | undefined, health: number, more: string, response: ServerResponse): void {
  if (url === "/metrics") response.end(`${METRICS}${more}`);
  else response.writeHead(health).end();
}

const METRICS = "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.5\n";

export async function errorOf(reply: Response): Promise<{ status: number; code: string; message: string }> {
  const { error } = (await reply.json()) as { error: { code: string; message: string; type: string } };
  if (!error.type.endsWith("_error")) throw new Error(`${error.type} is not a type of error`);
  return { status: reply.status, code: error.code, message: error.message };
}

export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });
}

export function demand(offered: number, seq: number, more: Partial<DemandReport> = {}): DemandReport {
  const classes = { chat: { offered, work: 2 * offered, retries: 0, clientRetries: 0, shed: 0 } };
  return { gateway: "g1", cluster: "east", seq, windowMs: SECOND, classes, engines: {}, ...more };
}

/** Resolves when the server has taken in all that was sent before it. */
export async function arrived(url: string): Promise<void> {
  await (await fetch(`${url}/healthz`)).arrayBuffer();
}

export function metrics(url: string): Promise<string> {
  return fetch(`${url}/metrics`).then((reply) => reply.text());
}

/** Looks again each time that the server has answered, until the condition holds. */
export async function until(condition: () => Promise<boolean>, most = 500): Promise<void> {
  for (let looks = 0; !(await condition()); looks++) {
    if (looks > most) throw new Error("the condition never held");
    await new Promise(setImmediate);
  }
}

export async function healthOf(url: string, id: string): Promise<string | undefined> {
  const answers = (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];
  return answers.find((each) => each.id === id)?.health;
}
