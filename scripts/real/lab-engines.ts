import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { cpus } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type LlamaEngine, LlamaEngines } from "../../test/src/real/engines.ts";
import { root } from "../../test/src/repository.ts";
import { Prompts } from "./prompts.ts";
import { StreamClient } from "./stream.ts";

/**
 * Engines of the lab's real fleet: models of four sizes, the layers and the hidden size in their names. They are small, for what
 * a mean under load is uncertain by goes with 1 ÷ √(run ÷ service time): with requests of 0.15 s and more a level would take
 * ten minutes.
 */
export const SIZES = [
  { id: "1x64", region: "east", flags: ["--layers", "1", "--hidden", "64", "--ffn", "128"] },
  { id: "2x96", region: "west", flags: ["--layers", "2", "--hidden", "96", "--ffn", "256"] },
  { id: "2x128", region: "west", flags: ["--layers", "2", "--hidden", "128", "--ffn", "384"] },
  { id: "2x192", region: "east", flags: ["--layers", "2", "--hidden", "192", "--ffn", "512"] },
] as const;

/** Answers that an engine computes at once; more wait for one of them to end. */
const SLOTS = 16;
const SLOT_TOKENS = 2048;
/**
 * How long an engine has the core before the next one has it, ms. All threads of a process stop and go on at a change, for which
 * the engines do a third less than with slices of 8; a first token comes up to three slices later than on a core of its own.
 * Quotas of control groups cost less, but leave an engine a sixth faster while the others are busy than while they are idle.
 */
const SLICE_MS = 4;
const LAST_CORE = cpus().length - 1;
/** So that the thread which computes is the one that has computed most. */
const WARM_UP = { requests: 4, promptTokens: 200, outputTokens: 100 };

export interface RealEngine {
  readonly id: string;
  readonly region: string;
  readonly url: string;
}

/** Four llama.cpp servers that share the last core in slices, each as fast as a sixth of it, at all times. */
export class LabEngines {
  readonly engines: readonly RealEngine[];
  readonly prompts: Prompts;
  /** Of the core, pieces of fixed work a ms: what an engine can do is kept to so much at all times. */
  readonly speed: number;
  readonly #models: readonly LlamaEngines[];
  readonly #slices: Slices;

  private constructor(parts: {
    engines: readonly RealEngine[];
    prompts: Prompts;
    models: readonly LlamaEngines[];
    slices: Slices;
  }) {
    this.engines = parts.engines;
    this.prompts = parts.prompts;
    this.#models = parts.models;
    this.#slices = parts.slices;
    this.speed = parts.slices.speed;
  }

  /**
   * @param seed of the prompts' words
   * @param options.keepAwake let no core sleep meanwhile: for what is to be measured
   * @param options.speed as engines had it before whose figures are to be compared; 0 = what the core can keep up now
   */
  static async start(
    python: string,
    seed: number,
    options: { readonly keepAwake: boolean; readonly speed: number },
  ): Promise<LabEngines> {
    leaveLastCore();
    const models: LlamaEngines[] = [];
    try {
      const processes: LlamaEngine[] = [];
      for (const { flags } of SIZES) {
        const model = await LlamaEngines.make(python, flags);
        models.push(model);
        // A search of all prompts so far for each new one would make the engine slower and slower.
        processes.push(await model.start(SLOTS, SLOT_TOKENS, ["--prompt-cache-mib", "0"]));
      }
      const clients = processes.map(({ url }) => new StreamClient(url, false));
      const prompts = await Prompts.of(clients[0]!, models[0]!.expected.text, seed);
      for (const client of clients) await warmUp(client, prompts);
      const slices = await Slices.start(python, processes, options);
      const engines = SIZES.map(({ id, region }, at) => ({ id, region, url: processes[at]!.url }));
      return new LabEngines({ engines, prompts, models, slices });
    } catch (error) {
      await Promise.all(models.map((model) => model.stop()));
      throw error;
    }
  }

  /** The part of the time in which the core was too slow for `speed`. */
  async stop(): Promise<number> {
    const slow = await this.#slices.stop();
    await Promise.all(this.#models.map((model) => model.stop()));
    return slow;
  }
}

/** This process and what it starts from now on, so that nothing but the engines runs there. */
function leaveLastCore(): void {
  if (LAST_CORE === 0) return;
  execFileSync("taskset", ["-a", "-c", "-p", `0-${LAST_CORE - 1}`, String(process.pid)], { stdio: "ignore" });
}

/** This process and what it starts from now on, before all that runs in the ordinary way, where that is allowed. */
export function goFirst(): void {
  const { status } = spawnSync("chrt", ["-a", "-r", "-p", "1", String(process.pid)], { stdio: "ignore" });
  if (status !== 0) console.error("what else runs here will slow engines and gateways: chrt is not allowed");
}

async function warmUp(client: StreamClient, prompts: Prompts): Promise<void> {
  const { requests, promptTokens, outputTokens } = WARM_UP;
  const answers = await Promise.all(
    Array.from({ length: requests }, () => client.ask(prompts.body(promptTokens, outputTokens))),
  );
  const failed = answers.find(({ failure }) => failure !== null);
  if (failed !== undefined) throw new Error(`an engine's first answers: ${failed.failure}`);
}

/** `time-slices.py` at work. */
class Slices {
  readonly speed: number;
  readonly #child: ChildProcess;
  readonly #said: AsyncIterator<string>;

  private constructor(child: ChildProcess, said: AsyncIterator<string>, speed: number) {
    this.#child = child;
    this.#said = said;
    this.speed = speed;
  }

  static async start(
    python: string,
    engines: readonly LlamaEngine[],
    { keepAwake, speed }: { readonly keepAwake: boolean; readonly speed: number },
  ): Promise<Slices> {
    const numbers = [LAST_CORE, SLICE_MS, speed, ...engines.map(({ pid }) => pid)].map(String);
    const args = [join(root, "scripts/real/time-slices.py"), keepAwake ? "keep-awake" : "let-sleep", ...numbers];
    const child = spawn(python, args, { stdio: ["pipe", "pipe", "inherit"] });
    const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return new Slices(child, said, await numberOf(said));
  }

  /** The part of the slices in which the core was slower. */
  async stop(): Promise<number> {
    this.#child.stdin!.end();
    return await numberOf(this.#said);
  }
}

/** Of the next line, `name: number`. */
async function numberOf(said: AsyncIterator<string>): Promise<number> {
  const { value, done } = await said.next();
  if (done) throw new Error("time-slices.py ended too early");
  return Number(value.split(": ")[1]);
}
