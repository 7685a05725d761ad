import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "./repository.ts";

/** A line of a program's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** What runs ends with this process, however that ends. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A process of the `guidevane` program, run from source. */
export class Program {
  readonly child: ChildProcess;
  readonly #name: string;
  readonly #lines: LogLine[] = [];
  /** Lines that are no JSON: what a crash prints. */
  readonly #text: string[] = [];
  readonly #waiting = new Set<() => void>();
  #exit: string | null = null;

  constructor(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#name = args[0] ?? "guidevane";
    const main = join(root, "packages/cli/src/main.ts");
    this.child = spawn(process.execPath, ["--conditions=@guidevane/source", main, ...args], {
      env: { ...process.env, ...env, LOG_LEVEL: "info" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    createInterface({ input: this.child.stderr! }).on("line", (line) => this.#read(line));
    running.add(this.child);
    this.child.once("exit", (code, signal) => {
      running.delete(this.child);
      this.#exit = `${this.#name} ended (${signal ?? `exit ${code}`})`;
      this.#wake();
    });
  }

  /** The first line for which `find` gives something, past or to come. @throws Error when the program ends before */
  async logged<T>(find: (line: LogLine) => T | undefined): Promise<T> {
    for (let at = 0; ; at++) {
      while (at >= this.#lines.length) {
        if (this.#exit !== null) throw new Error(`${this.#exit}\n${this.#text.join("\n")}`);
        await new Promise<void>((resolve) => this.#waiting.add(resolve));
      }
      const found = find(this.#lines[at]!);
      if (found !== undefined) return found;
    }
  }

  /** Ends it and waits until it has ended; SIGKILL leaves it no time for anything. */
  async end(signal: "SIGTERM" | "SIGINT" | "SIGKILL" = "SIGTERM"): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) {
      const exited = once(this.child, "exit");
      this.child.kill(signal);
      await exited;
    }
    return this.child.exitCode;
  }

  #read(line: string): void {
    try {
      this.#lines.push(JSON.parse(line) as LogLine);
    } catch {
      this.#text.push(line);
      return;
    }
    this.#wake();
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }
}
