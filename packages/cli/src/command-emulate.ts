import { type EngineSpec, type Fleet, GuidevaneError, profileOf, seededRandom } from "@guidevane/core";
import type { EmulatedEngine, EmulatedEngineOptions, EmulatedKindName } from "@guidevane/simulator";
import type { Command } from "commander";
import { isLoopback, parseCount, parsePort } from "./address.ts";
import { badUsage } from "./exit-code.ts";
import { createLog } from "./log.ts";
import { tellReady, untilStopped } from "./process-life.ts";
import { readFleet, readProfile } from "./read-fleet.ts";

interface EmulateFlags {
  port?: string;
  model?: string;
  profile?: string;
  kind: string;
  replicas: string;
  kvTokens?: string;
  seed?: string;
  fleet?: string;
}

export function addEmulate(program: Command): void {
  program
    .command("emulate")
    .description(
      "serve emulated engines: OpenAI API, metrics of their kind, continuous batching at the latencies of a profile",
    )
    .option("--port <port>", "port on loopback; 0 = a free one")
    .option("--model <name>", "model it serves")
    .option("--profile <file>", "profile file")
    .option("--kind <kind>", `whose metrics, health path and errors it has: ${KINDS_TEXT}`, "vllm")
    .option("--replicas <n>", "ready replicas", "1")
    .option("--kv-tokens <n>", "KV memory of a replica (default: twice what the streams of full load hold)")
    .option("--seed <n>", "spread the answers' decoding times by 5 %, drawn from this seed (default: no spread)")
    .option("--fleet <file>", "all engines of a fleet file in this process, each on the port of its URL")
    .action((flags: EmulateFlags) => emulate(flags));
}

async function emulate(flags: EmulateFlags): Promise<void> {
  const log = createLog("emulate", process.env);
  if (!isEmulated(flags.kind)) badUsage("--kind", flags.kind, `must be ${KINDS_TEXT}`);
  const seed = flags.seed === undefined ? undefined : parseCount("--seed", flags.seed);
  const wanted =
    flags.fleet === undefined ? [await oneEngine(flags)] : ofFleet(await readFleet(flags.fleet), flags.fleet);
  const { startEmulatedEngine } = await import("@guidevane/simulator");
  const engines: EmulatedEngine[] = [];
  const stopped = untilStopped();
  try {
    for (const [index, { name, options }] of wanted.entries()) {
      const spread = seed === undefined ? {} : { jitter: JITTER, random: seededRandom(seed + index) };
      const engine = await startEmulatedEngine({ ...options, ...spread });
      engines.push(engine);
      log.info(
        { engine: name, url: engine.url, models: options.models, capacityWps: engine.model.capacityWps },
        "listening",
      );
    }
    tellReady();
    log.info({ why: await stopped }, "stopping");
  } finally {
    await Promise.all(engines.map((engine) => engine.kill()));
  }
}

/** Those of `EMULATED_KINDS`: the simulator itself is loaded only when it is needed. */
export const KINDS: readonly EmulatedKindName[] = ["vllm", "sglang", "tgi", "trtllm", "triton", "llamacpp"];
const KINDS_TEXT = `${KINDS.slice(0, -1).join(", ")} or ${KINDS.at(-1)}`;
const JITTER = 0.05;

interface Wanted {
  readonly name: string;
  readonly options: EmulatedEngineOptions;
}

async function oneEngine({ port: portText, model, profile: file, ...flags }: EmulateFlags): Promise<Wanted> {
  if (portText === undefined || model === undefined || file === undefined) {
    const missing = Object.entries({ "--port": portText, "--model": model, "--profile": file })
      .filter(([, value]) => value === undefined)
      .map(([flag]) => flag);
    return badUsage(missing.join(", "), undefined, "required without --fleet");
  }
  const port = parsePort("--port", portText);
  const replicas = parseCount("--replicas", flags.replicas);
  const kvTokens = flags.kvTokens === undefined ? undefined : parseCount("--kv-tokens", flags.kvTokens);
  const kind = flags.kind as EmulatedKindName;
  const profile = await readProfile(file);
  return { name: model, options: { port, models: [model], kind, profile, replicas, kvTokens } };
}

function isEmulated(kind: string): kind is EmulatedKindName {
  return (KINDS as readonly string[]).includes(kind);
}

function ofFleet(fleet: Fleet, file: string): Wanted[] {
  return [...fleet.engines.values()].map((engine) => ({
    name: engine.id,
    options: {
      port: portOf(engine, file),
      models: engine.models,
      // What is none of them has nothing of its own that could be emulated.
      kind: isEmulated(engine.kind) ? engine.kind : undefined,
      profile: profileOf(fleet, engine),
      capacityWps: engine.capacityWps,
      replicas: engine.replicas,
    },
  }));
}

function portOf(engine: EngineSpec, file: string): number {
  const url = new URL(engine.url);
  const refuse = (why: string): never => {
    throw new GuidevaneError(
      "bad_fleet",
      `${file}: engines.${engine.id}.url: ${why} (got ${JSON.stringify(engine.url)})`,
    );
  };
  if (url.protocol !== "http:" || !isLoopback(url.hostname))
    return refuse("an emulated engine is on http and loopback");
  if (url.pathname !== "/") return refuse("an emulated engine has no path prefix");
  if (engine.health.port !== null || engine.metrics.port !== null)
    return refuse("an emulated engine has its health and metrics on its own port");
  return Number(url.port || 80);
}
