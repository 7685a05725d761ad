import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { profileYaml } from "../packages/cli/src/profile-yaml.ts";
import { type FittedProfile, fitProfile, parseLoadPoints } from "../packages/signals/src/index.ts";

/**
 * Writes the profiles that ship with the program, from public measurements. Run where those are:
 *
 *     GUIDEVANE_DATA=../shared/data node --conditions=@guidevane/source scripts/ship-profiles.ts
 */

/** Shipped name, and the curve that it is fitted to. Pairs that people run, each with a held-out error that is worth shipping. */
const SHIPPED: Readonly<Record<string, string>> = {
  "llama-3.1-70b-fp8-2xh100": "2xh100-meta-llama-llama-3.1-70b-fp8-vllm-agg-tp2-ep1-1024x1024",
  "llama-3.1-70b-fp8-4xh100": "4xh100-meta-llama-llama-3.1-70b-fp8-vllm-agg-tp4-ep1-8192x1024",
  "llama-3.1-70b-fp8-1xh200": "1xh200-meta-llama-llama-3.1-70b-fp8-trtllm-agg-tp1-ep1-1024x1024",
  "llama-3.1-70b-fp8-2xh200": "2xh200-meta-llama-llama-3.1-70b-fp8-trtllm-agg-tp2-ep1-1024x1024",
  "llama-3.1-70b-fp8-2xb200": "2xb200-meta-llama-llama-3.1-70b-fp8-trtllm-agg-tp2-ep1-8192x1024",
  "llama-3.1-70b-fp4-2xb200": "2xb200-meta-llama-llama-3.1-70b-fp4-trtllm-agg-tp2-ep1-8192x1024",
  "gpt-oss-120b-fp4-2xh100": "2xh100-openai-gpt-oss-120b-fp4-vllm-0.18.0-agg-tp2-ep1-8192x1024",
  "gpt-oss-120b-fp4-2xh200": "2xh200-openai-gpt-oss-120b-fp4-vllm-0.18.0-agg-tp2-ep1-8192x1024",
  "gpt-oss-120b-fp4-1xb200": "1xb200-openai-gpt-oss-120b-fp4-trtllm-1.2.0rc2.post2-agg-tp1-ep1-8192x1024",
  "qwen3-32b-2xh100": "2xh100-qwen-qwen3-32b-vllm-0.12.0-agg-tp2-ep1-1024x512",
  "qwen3-235b-a22b-fp8-4xh100": "4xh100-qwen-qwen3-235b-a22b-fp8-fp8-trtllm-1.0.0rc3-agg-tp4-ep1-512x256",
  "deepseek-r1-fp4-4xb200": "4xb200-deepseek-ai-deepseek-r1-fp4-sglang-agg-tp4-ep1-8192x1024",
  "minimax-m2.5-fp8-2xb300": "2xb300-minimaxai-minimax-m2.5-fp8-vllm-0.19.0-agg-tp2-ep1-8192x1024",
};

const DATA = join(process.env.GUIDEVANE_DATA ?? "../shared/data", "profiles/engine_load_points.csv");
const { curves } = parseLoadPoints(readFileSync(DATA, "utf8"), DATA);
const context = {
  curves,
  data: "engine_load_points.csv: aiconfigurator's silicon samples (github.com/ai-dynamo/aiconfigurator), most of them of the public InferenceX benchmark",
  licence: "Apache-2.0",
};
const fitted = new Map<string, FittedProfile>();
for (const curve of curves.filter(({ points }) => points.length >= 5)) {
  const profile = fitProfile(curve, context);
  fitted.set(profile.profile, profile);
}
for (const [name, curve] of Object.entries(SHIPPED)) {
  const profile = fitted.get(curve);
  if (profile === undefined) throw new Error(`no curve ${curve} in ${DATA}`);
  const measured = `${context.data}; ${curve}`;
  const shipped = { ...profile, profile: name, source: { ...profile.source, data: measured } };
  writeFileSync(join("packages/cli/profiles", `${name}.yaml`), profileYaml(shipped));
}
