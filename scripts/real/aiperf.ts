import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { MODEL } from "../../test/src/real/client.ts";
import { findPython, LlamaEngines } from "../../test/src/real/engines.ts";
import { eventually, Whole } from "../../test/src/whole.ts";

/**
 * `node --conditions=@guidevane/source scripts/real/aiperf.ts [ROUNDS]`: NVIDIA's aiperf against four real llama.cpp servers,
 * straight to one of them and through a gateway to all, in turn. Prints a line a run; exit 1 when a run through the gateway
 * had an error. GUIDEVANE_AIPERF is its program (`pip install aiperf`), GUIDEVANE_PYTHON a Python as the tests want it.
 */

const ENGINES = 4;
const SLOTS = 4;
const REQUESTS = 400;
const CONCURRENCY = 8;

interface Metric {
  readonly avg?: number;
  readonly p50?: number;
  readonly p99?: number;
}
type Export = Readonly<Record<string, Metric | undefined>>;

const aiperf = process.env.GUIDEVANE_AIPERF ?? "aiperf";
const found = findPython();
if ("missing" in found) {
  console.error(`aiperf.ts: ${found.missing}`);
  process.exitCode = 2;
} else {
  process.exitCode = await main(found.python, Number(process.argv[2] ?? 3));
}

async function main(python: string, rounds: number): Promise<number> {
  const whole = new Whole();
  try {
    const llama = await LlamaEngines.make(python);
    whole.onStop(() => llama.stop());
    const urls: string[] = [];
    for (let at = 0; at < ENGINES; at++) urls.push((await llama.start(SLOTS)).url);
    whole.writeFleet(Object.fromEntries(urls.map((url, at) => [`e${at}`, { url, models: [MODEL], kind: "openai" }])), {
      classes: { chat: { model: MODEL, promptTokens: 200, outputTokens: 60 } },
    });
    const control = await whole.control();
    const gateway = await whole.gateway(control.url);
    const body = { model: MODEL, messages: [{ role: "user", content: "ready?" }], max_tokens: 1 };
    await eventually(async () => Number((await gateway.post(body)).headers.get("x-guidevane-snapshot")) > 0);

    console.log("| to | errors | requests/s | TTFT p50 / p99, ms | between tokens p50 / p99, ms |");
    console.log("| --- | --- | --- | --- | --- |");
    let errors = 0;
    for (let round = 0; round < rounds; round++) {
      await report("one engine, straight", urls[0]!, llama.folder);
      errors += await report("four engines, through the gateway", gateway.url, llama.folder);
    }
    return errors === 0 ? 0 : 1;
  } finally {
    await whole.stop();
  }
}

/** One run, as a row; its errors. */
async function report(name: string, url: string, model: string): Promise<number> {
  const out = mkdtempSync(join(tmpdir(), "guidevane-aiperf-"));
  try {
    await run(url, model, out);
    const metrics = JSON.parse(readFileSync(exportOf(out), "utf8")) as Export;
    const of = (metric: string, at: keyof Metric) => metrics[metric]?.[at];
    const errors = of("error_request_count", "avg") ?? 0;
    const show = (metric: string) =>
      (["p50", "p99"] as const).map((at) => of(metric, at)?.toFixed(1) ?? "–").join(" / ");
    const rate = of("request_throughput", "avg")?.toFixed(1) ?? "–";
    console.log(
      `| ${name} | ${errors} of ${REQUESTS} | ${rate} | ${show("time_to_first_token")} | ${show("inter_token_latency")} |`,
    );
    return errors;
  } finally {
    rmSync(out, { recursive: true });
  }
}

/** Offline it takes a folder for a hub's name, so the model's folder is given to it as a hub's cache. */
async function run(url: string, model: string, out: string): Promise<void> {
  const offline = { HF_HOME: model, HF_HUB_OFFLINE: "1", TRANSFORMERS_OFFLINE: "1", DO_NOT_TRACK: "1" };
  const load = ["--concurrency", CONCURRENCY, "--request-count", REQUESTS, "--random-seed", 7];
  const shape = ["--isl", 200, "--isl-stddev", 40, "--osl", 60, "--extra-inputs", "ignore_eos:true"];
  const to = ["--url", url, "--endpoint-type", "chat", "--streaming", "-m", MODEL, "--tokenizer", "local/tiny"];
  const args = ["profile", ...to, ...load, ...shape, "--ui", "none", "--output-artifact-dir", out];
  await promisify(execFile)(aiperf, args.map(String), { env: { ...process.env, ...offline }, maxBuffer: 64 << 20 });
}

function exportOf(folder: string): string {
  const name = readdirSync(folder, { recursive: true, encoding: "utf8" }).find((file) =>
    file.endsWith("profile_export_aiperf.json"),
  );
  if (name === undefined) throw new Error(`aiperf wrote no export in ${folder}`);
  return join(folder, name);
}
