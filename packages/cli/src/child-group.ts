import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { CommandFailure } from "./exit-code.ts";
import type { ChildMessage } from "./process-life.ts";

export interface Child {
  readonly name: string;
  /** What it builds on has a lower one, and ends after it. */
  readonly tier: number;
  readonly process: ChildProcess;
  /** Resolves when it does what it was started for; rejects when it ended before. */
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
}

/**
 * Children that run this program's own commands and live and die together: when one ends by itself `broken` resolves with
 * a sentence about it, and `stop` ends all.
 */
export class ChildGroup {
  readonly broken: Promise<string>;
  readonly #children: Child[] = [];
  #stopping = false;
  #break: (why: string) => void = () => {};

  constructor() {
    this.broken = new Promise((resolve) => {
      this.#break = resolve;
    });
  }

  /** @param onLine gets each line of the child's stdout; without it stdout is dropped */
  start(
    { name, tier }: Pick<Child, "name" | "tier">,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    onLine?: (line: string) => void,
  ): Child {
    // Work that had not heard of the end yet must not leave a child behind it.
    if (this.#stopping) throw new CommandFailure(`${name} is not started: everything is being ended`);
    const program = fileURLToPath(
      new URL(import.meta.url.endsWith(".ts") ? "./main.ts" : "./main.js", import.meta.url),
    );
    const started = fork(program, args, { env, stdio: ["ignore", onLine ? "pipe" : "ignore", "inherit", "ipc"] });
    if (onLine !== undefined) readLines(started, onLine);
    const ended = new Promise<void>((resolve) => {
      started.once("exit", (code, signal) => {
        const why = `${name} ended by itself (${signal ?? `exit code ${code}`})`;
        // A terminal's Ctrl-C also ends a child that has not come to ignoring it; then this process has it too.
        if (signal === "SIGINT") setTimeout(() => this.#break(why), INTERRUPT_MS).unref();
        else this.#break(why);
        resolve();
      });
      started.once("error", (error) => {
        this.#break(`${name} can't be started: ${error.message}`);
        resolve();
      });
    });
    const ready = new Promise<void>((resolve) => {
      started.on("message", (message: ChildMessage) => {
        if (message.ready) resolve();
      });
    });
    const child = { name, tier, process: started, ready, ended };
    this.#children.push(child);
    return child;
  }

  /** Says to a child that waits for it that what it asks is there. */
  tell(child: Child): void {
    // One that has ended meanwhile has told so by its end.
    if (child.process.connected) child.process.send({ begin: true });
  }

  /** Ends the children of the highest tier first; whoever is left after `graceMs` is killed. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    const deadline = setTimeout(() => {
      for (const child of this.#children) child.process.kill("SIGKILL");
    }, graceMs);
    const tiers = [...new Set(this.#children.map((child) => child.tier))].sort((a, b) => b - a);
    for (const tier of tiers) await end(this.#children.filter((child) => child.tier === tier));
    clearTimeout(deadline);
  }
}

const INTERRUPT_MS = 1000;

async function end(children: readonly Child[]): Promise<void> {
  for (const child of children) child.process.kill("SIGTERM");
  await Promise.all(children.map((child) => child.ended));
}

function readLines(child: ChildProcess, onLine: (line: string) => void): void {
  let rest = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) onLine(line);
  });
}
