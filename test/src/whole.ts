import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClusterSnapshot, type Profile, parseProfile } from "@guidevane/core";
import { type EmulatedEngine, type EmulatedEngineOptions, startEmulatedEngine } from "@guidevane/simulator";
import OpenAI from "openai";
import { Program } from "./program.ts";

export const MODEL = "demo";

/**
 * Quick enough for a test, slow enough to break off: 20 ms to the first token, 2 ms a token, and it holds 100 units of work
 * a second.
 */
const profileText = `
profile: test
reference: { promptTokens: 64, outputTokens: 16 }
work: { prefillPerKtok: 3.125, decodePerKtok: 50 }
prefillMsPerTok: 0.1
loop: open
capacityWps: 100
ttftMs: [[0, 20], [0.7, 24], [0.95, 60], [1, 120]]
tbotMs: [[0, 2], [0.7, 2.2], [0.95, 5], [1, 9]]
`;
const testProfile: Profile = parseProfile(profileText, "test profile");

export interface FleetEngine {
  readonly url: string;
  readonly region?: string;
  readonly capacityWps?: number;
  readonly [key: string]: unknown;
}

/** A folder with a fleet file, and everything that was started with it; `stop` ends all and removes the folder. */
export class Whole {
  readonly folder: string = mkdtempSync(join(tmpdir(), "guidevane-whole-"));
  readonly fleetFile: string = join(this.folder, "fleet.yaml");
  readonly #endings: (() => Promise<unknown>)[] = [];
  readonly #env: Readonly<Record<string, string>>;

  /** @param env beyond this process's, for every program that is started */
  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = env;
  }

  /** Starts an engine of this process's own, so that a test sees what reaches it. */
  async engine(options: Partial<EmulatedEngineOptions> = {}): Promise<EmulatedEngine> {
    const engine = await startEmulatedEngine({ profile: testProfile, models: [MODEL], ...options });
    this.#endings.push(() => engine.kill());
    return engine;
  }

  /** Writes the fleet file: clusters `a`, `b` … in regions of the same name, and what else is given. */
  writeFleet(engines: Readonly<Record<string, FleetEngine>>, rest: Readonly<Record<string, unknown>> = {}): void {
    writeFileSync(join(this.folder, "profile.yaml"), profileText);
    const whole = Object.entries(engines).map(([id, engine]) => {
      const usual = { region: "a", models: [MODEL], profile: "test", health: { intervalMs: 200 } };
      return [id, { ...usual, ...engine }] as const;
    });
    const fleet = {
      clusters: { a: { region: "a" } },
      engines: Object.fromEntries(whole),
      classes: { chat: { model: MODEL, work: 1, promptTokens: 64, outputTokens: 16 } },
      profiles: { test: { file: "profile.yaml" } },
      policy: { tickMs: 300 },
      ...rest,
    };
    writeFileSync(this.fleetFile, JSON.stringify(fleet));
  }

  /** Starts a control plane and waits until it listens. */
  async control(): Promise<{ program: Program; url: string }> {
    const store = join(this.folder, "store");
    const program = this.program("control", "--fleet", this.fleetFile, "--admin", "127.0.0.1:0", "--store", store);
    return {
      program,
      url: await program.logged(({ adminUrl }) => (typeof adminUrl === "string" ? adminUrl : undefined)),
    };
  }

  /**
   * Starts a gateway and waits until it is ready: it listens and routes by a snapshot, or by bootstrap's. It has one
   * thread, which starts sooner, unless the flags say otherwise.
   */
  async gateway(controlUrl: string, cluster = "a", ...flags: string[]): Promise<Gateway> {
    const state = join(this.folder, `state-${cluster}`);
    const places = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--state", state];
    const program = this.program(
      ...["gateway", "--cluster", cluster, "--fleet", this.fleetFile, "--control", controlUrl, ...places],
      ...(flags.includes("--threads") ? flags : ["--threads", "1", ...flags]),
    );
    const { url, adminUrl } = await program.logged((line) =>
      typeof line.url === "string" && typeof line.adminUrl === "string"
        ? { url: line.url, adminUrl: line.adminUrl }
        : undefined,
    );
    return new Gateway(program, url, adminUrl);
  }

  program(...args: string[]): Program {
    const program = new Program(args, this.#env);
    this.#endings.push(() => program.end("SIGKILL"));
    return program;
  }

  /** Runs `end` when the test is over, with the rest. */
  onStop(end: () => Promise<unknown>): void {
    this.#endings.push(end);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#endings.map((end) => end()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Gateway {
  readonly program: Program;
  readonly url: string;
  readonly adminUrl: string;
  /** What a user has, without retries of its own that would hide ours. */
  readonly client: OpenAI;

  constructor(program: Program, url: string, adminUrl: string) {
    this.program = program;
    this.url = url;
    this.adminUrl = adminUrl;
    this.client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "unused", maxRetries: 0, timeout: 20_000 });
  }

  /** Waits until it routes by a snapshot that the control plane published. */
  async hasSnapshot(): Promise<void> {
    await eventually(async () => {
      const answer = await this.post({ model: MODEL, messages: [{ role: "user", content: "ready?" }], max_tokens: 1 });
      return answer.status === 200 && Number(answer.headers.get("x-guidevane-snapshot")) > 0;
    });
  }

  /** A chat request as plain HTTP, its answer read to the end. */
  async post(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const answer = await fetch(`${this.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The cluster's snapshot as the control plane has it now; null before the first. */
export async function publishedSnapshot(controlUrl: string, cluster = "a"): Promise<ClusterSnapshot | null> {
  const answer = await fetch(`${controlUrl}/v1/snapshot?cluster=${cluster}`);
  if (answer.status !== 200) {
    await answer.text();
    return null;
  }
  return (await answer.json()) as ClusterSnapshot;
}

/** Asks again and again until it is so. @throws Error when it never was within `withinMs` */
export async function eventually(isSo: () => Promise<boolean>, withinMs = 15_000, everyMs = POLL_MS): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`it did not come about within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

const POLL_MS = 25;

/** Waits for an engine to have `inFlight` requests, and says how long that took, ms. */
export async function engineHas(engine: EmulatedEngine, inFlight: number): Promise<number> {
  const startMs = performance.now();
  if (engine.counts.inFlight === inFlight) return 0;
  await new Promise<void>((resolve) => {
    const stop = engine.watch((counts) => {
      if (counts.inFlight !== inFlight) return;
      stop();
      resolve();
    });
  });
  return performance.now() - startMs;
}
