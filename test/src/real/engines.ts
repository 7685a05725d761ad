import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { root } from "../repository.ts";

/**
 * Real llama.cpp servers with a tiny scripted model that says a known text byte for byte. They need Python with `xllamacpp
 * numpy tokenizers gguf`: GUIDEVANE_PYTHON, else python3.
 */

/** What the model says. */
export interface Expected {
  readonly text: string;
  readonly tool: { readonly name: string; readonly arguments: unknown };
  /** Of the text, with its end. */
  readonly tokens: number;
}

/** The Python to use, or why there is none. */
export function findPython(): { readonly python: string } | { readonly missing: string } {
  const python = process.env.GUIDEVANE_PYTHON ?? "python3";
  const probe = spawnSync(python, ["-c", "import xllamacpp, numpy, tokenizers, gguf"], { encoding: "utf8" });
  if (probe.error !== undefined) return { missing: `${python} can't be run` };
  if (probe.status === 0) return { python };
  return { missing: `${python} lacks packages: ${probe.stderr.trimEnd().split("\n").at(-1)}` };
}

const scripts = join(root, "scripts/real");

/** The model in a temporary folder, and the servers that were started with it. */
export class LlamaEngines {
  readonly expected: Expected;
  /** Where `tiny-model.py` wrote it. */
  readonly folder: string;
  readonly #python: string;
  readonly #engines: LlamaEngine[] = [];

  private constructor(python: string, folder: string) {
    this.#python = python;
    this.folder = folder;
    this.expected = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as Expected;
  }

  /** @param size flags of `tiny-model.py` for a larger model */
  static async make(python: string, size: readonly string[] = []): Promise<LlamaEngines> {
    const folder = mkdtempSync(join(tmpdir(), "guidevane-model-"));
    await promisify(execFile)(python, [join(scripts, "tiny-model.py"), folder, ...size]);
    return new LlamaEngines(python, folder);
  }

  /**
   * @param slots answers at once
   * @param slotTokens context of each
   * @param flags more of `llama-server.py`
   */
  async start(slots: number, slotTokens = SLOT_TOKENS, flags: readonly string[] = []): Promise<LlamaEngine> {
    const server = [join(scripts, "llama-server.py"), join(this.folder, "gguf/tiny.gguf")];
    const context = String(slots * slotTokens);
    const args = [...server, "--slots", String(slots), "--context", context, ...flags];
    const engine = new LlamaEngine(this.#python, args);
    this.#engines.push(engine);
    await engine.start();
    return engine;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => engine.kill()));
    rmSync(this.folder, { recursive: true });
  }
}

export const SLOT_TOKENS = 8192;

export class LlamaEngine {
  /** The same after a restart. */
  url = "";
  readonly #python: string;
  readonly #args: readonly string[];
  #child: ChildProcess | null = null;

  constructor(python: string, args: readonly string[]) {
    this.#python = python;
    this.#args = args;
  }

  /** Of its process; only once it was started. */
  get pid(): number {
    return this.#child!.pid!;
  }

  /** Waits until it listens: on a free port, or on the one it had. */
  async start(): Promise<void> {
    const port = this.url === "" ? "0" : new URL(this.url).port;
    // Its input stays open as long as this process lives, and it no longer than that.
    const child = spawn(this.#python, [...this.#args, "--port", port], { stdio: ["pipe", "pipe", "ignore"] });
    this.#child = child;
    for await (const line of createInterface({ input: child.stdout })) {
      this.url = line;
      return;
    }
    throw new Error("the llama.cpp server ended before it listened");
  }

  /** Ends it at once, as a crash would. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  /** Answers under way, and those that wait for a slot. */
  async load(): Promise<{ processing: number; waiting: number }> {
    const text = await (await fetch(`${this.url}/metrics`)).text();
    const read = (name: string) => Number(new RegExp(`^llamacpp:${name} (.*)$`, "m").exec(text)![1]);
    return { processing: read("requests_processing"), waiting: read("requests_deferred") };
  }
}
