import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { MODEL } from "../../test/src/real/client.ts";
import { findPython, LlamaEngines } from "../../test/src/real/engines.ts";
import { root } from "../../test/src/repository.ts";
import { Prompts } from "./prompts.ts";
import { StreamClient } from "./stream.ts";

/**
 * `node --conditions=@guidevane/source scripts/real/logs.ts FOLDER [LEVEL…]`: closed loops of aiperf, of `vllm bench serve` and of
 * our own client against one real llama.cpp server, in turn at each level; then what `guidevane profile fit` makes of each
 * one's log. Leaves the logs in FOLDER. GUIDEVANE_AIPERF and GUIDEVANE_VLLM are their programs (one that is not set is left out),
 * GUIDEVANE_PYTHON a Python as the tests want it.
 */

const SLOTS = 16;
const SIZE = ["--layers", "2", "--hidden", "256", "--ffn", "768"];
const SHAPE = { promptTokens: 100, outputTokens: 24 };
const SEED = 7;
/** Of a level; more where more are under way. */
const requestsAt = (level: number) => 100 + 10 * level;

const found = findPython();
const [folder, ...levels] = process.argv.slice(2);
if ("missing" in found || folder === undefined) {
  console.error(`logs.ts: ${"missing" in found ? found.missing : "name a folder for the logs"}`);
  process.exitCode = 2;
} else {
  await main(found.python, resolve(folder), levels.length === 0 ? [1, 2, 4, 8] : levels.map(Number));
}

async function main(python: string, out: string, levels: readonly number[]): Promise<void> {
  mkdirSync(out, { recursive: true });
  const llama = await LlamaEngines.make(python, SIZE);
  try {
    const { url } = await llama.start(SLOTS, 2048, ["--prompt-cache-mib", "0"]);
    const client = new StreamClient(url, false);
    const prompts = await Prompts.of(client, llama.expected.text, SEED);
    const rows: string[] = [];
    const start = performance.now();
    for (const level of levels) {
      rows.push(...(await ownRun(client, prompts, level, start)));
      await aiperfRun(url, llama.folder, join(out, `aiperf-c${level}`), level);
      await vllmRun(url, llama.folder, out, level);
      console.error(`${level} in flight`);
    }
    const head = "run,start_ms,prompt_tokens,output_tokens,ttft_ms,e2e_ms,error";
    writeFileSync(join(out, "own.csv"), `${[head, ...rows].join("\n")}\n`);
  } finally {
    await llama.stop();
  }
  const named = (test: RegExp) =>
    readdirSync(out, { recursive: true, encoding: "utf8" })
      .filter((name) => test.test(name))
      .map((name) => join(out, name));
  showFit("our own client", named(/^own\.csv$/));
  showFit("aiperf", named(/profile_export\.jsonl$/));
  showFit("vllm bench serve", named(/^vllm-c\d+\.json$/));
}

/** Requests of one level, each sent when another has ended, as rows of a log. */
async function ownRun(client: StreamClient, prompts: Prompts, level: number, start: number): Promise<string[]> {
  const rows: string[] = [];
  let left = requestsAt(level);
  const one = async () => {
    while (left-- > 0) {
      const atMs = performance.now() - start;
      const { failure, ttftMs, e2eMs } = await client.ask(prompts.body(SHAPE.promptTokens, SHAPE.outputTokens));
      const times = [ttftMs, e2eMs].map((ms) => (Number.isNaN(ms) ? "" : ms.toFixed(2)));
      rows.push(
        [`c${level}`, atMs.toFixed(2), SHAPE.promptTokens, SHAPE.outputTokens, ...times, failure ?? ""].join(","),
      );
    }
  };
  await Promise.all(Array.from({ length: level }, one));
  return rows;
}

/** Offline it takes a folder for a hub's name, so the model's folder is given to it as a hub's cache. */
async function aiperfRun(url: string, model: string, out: string, level: number): Promise<void> {
  const program = process.env.GUIDEVANE_AIPERF;
  if (program === undefined) return;
  const to = ["--url", url, "--endpoint-type", "chat", "--streaming", "-m", MODEL, "--tokenizer", "local/tiny"];
  const load = ["--concurrency", level, "--request-count", requestsAt(level), "--random-seed", SEED];
  const shape = ["--isl", SHAPE.promptTokens, "--osl", SHAPE.outputTokens, "--extra-inputs", "ignore_eos:true"];
  const rest = ["--ui", "none", "--output-artifact-dir", out];
  await run(program, ["profile", ...to, ...load, ...shape, ...rest], { HF_HOME: model });
}

async function vllmRun(url: string, model: string, out: string, level: number): Promise<void> {
  const program = process.env.GUIDEVANE_VLLM;
  if (program === undefined) return;
  const to = ["--backend", "openai-chat", "--base-url", url, "--endpoint", "/v1/chat/completions", "--model", MODEL];
  const data = ["--tokenizer", join(model, "hf"), "--dataset-name", "random"];
  const shape = ["--random-input-len", SHAPE.promptTokens, "--random-output-len", SHAPE.outputTokens, "--ignore-eos"];
  const load = ["--max-concurrency", level, "--num-prompts", requestsAt(level), "--seed", SEED];
  const save = ["--save-result", "--save-detailed", "--result-dir", out, "--result-filename", `vllm-c${level}.json`];
  await run(program, ["bench", "serve", ...to, ...data, ...shape, ...load, ...save, "--disable-tqdm"], {});
}

async function run(program: string, args: readonly (string | number)[], env: Record<string, string>): Promise<void> {
  const offline = { HF_HUB_OFFLINE: "1", TRANSFORMERS_OFFLINE: "1", DO_NOT_TRACK: "1", VLLM_NO_USAGE_STATS: "1" };
  const all = { ...process.env, ...offline, ...env };
  await promisify(execFile)(program, args.map(String), { env: all, maxBuffer: 64 << 20 });
}

function showFit(name: string, logs: readonly string[]): void {
  if (logs.length === 0) return;
  const cli = join(root, "packages/cli/src/main.ts");
  const args = ["--conditions=@guidevane/source", cli, "profile", "fit", ...logs, "--loop", "closed"];
  console.log(`\n${name}\n${execFileSync(process.execPath, args, { encoding: "utf8" })}`);
}
