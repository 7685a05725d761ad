import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { dataFolder } from "./repository.ts";

/**
 * A real llama.cpp server with a tiny scripted model, which says a known text byte for byte. It needs Python with
 * `xllamacpp numpy tokenizers gguf` (GUIDEVANE_PYTHON, else python3) and the two scripts that make the model and serve it
 * (GUIDEVANE_REAL_TOOLS, else tools/real beside the captures).
 */
export interface LlamaTools {
  readonly python: string;
  readonly folder: string;
}

export interface LlamaEngine {
  readonly url: string;
  /** What the model says to a plain chat. */
  readonly expected: { readonly text: string };
  stop(): Promise<void>;
}

/** The tools, or why they can't be used here. */
export function findLlamaTools(): LlamaTools | string {
  const folder = process.env.GUIDEVANE_REAL_TOOLS ?? join(dataFolder, "..", "tools", "real");
  if (!existsSync(join(folder, "llama-server.py"))) return "the scripts are not here, see GUIDEVANE_REAL_TOOLS";
  const python = process.env.GUIDEVANE_PYTHON ?? "python3";
  const probe = spawnSync(python, ["-c", "import xllamacpp, numpy, tokenizers, gguf"], { encoding: "utf8" });
  if (probe.error !== undefined) return `${python} can't be run`;
  return probe.status === 0 ? { python, folder } : `${python} lacks packages: ${lastLine(probe.stderr)}`;
}

/** Makes the model in a temporary folder, starts the server on a free port and waits until it listens. */
export async function startLlamaEngine({ python, folder }: LlamaTools): Promise<LlamaEngine> {
  const model = mkdtempSync(join(tmpdir(), "guidevane-model-"));
  await promisify(execFile)(python, [join(folder, "make-tiny-model.py"), model]);
  const expected = JSON.parse(readFileSync(join(model, "expected.json"), "utf8")) as { text: string };
  const server = join(folder, "llama-server.py");
  const child = spawn(
    python,
    [server, join(model, "gguf/tiny.gguf"), "--port", "0", "--slots", "4", "--ctx", "32768"],
    {
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  const url = await readyUrl(child);
  return {
    url,
    expected,
    async stop() {
      const exited = once(child, "exit");
      if (child.kill()) await exited;
      rmSync(model, { recursive: true });
    },
  };
}

async function readyUrl(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) {
    const found = /^ready (\S+) in /.exec(line)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error("the llama.cpp server ended before it listened");
}

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}
