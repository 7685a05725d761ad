import { describe, expect, it } from "vitest";
import { MODELS, type ModelFacts } from "./hardware-facts.ts";

/**
 * The facts of models against what the shapes of their layers come to. Shapes are the defaults of transformers 5.24
 * (`models/*` `/configuration_*.py`, Apache-2.0), which for these families are those of the released models.
 */

/** What a layer of experts is made of. */
interface Experts {
  readonly hidden: number;
  readonly width: number;
  readonly experts: number;
  readonly perToken: number;
  readonly shared: number;
}

/** Weights of gate, up and down projections. */
const feedForward = (hidden: number, width: number): number => 3 * hidden * width;
const attention = (hidden: number, heads: number, kvHeads: number, headSize: number): number =>
  2 * hidden * heads * headSize + 2 * hidden * kvHeads * headSize;

/** Weights of one such layer, all of them and those that one token touches. */
function expertLayer({ hidden, width, experts, perToken, shared }: Experts): { all: number; active: number } {
  const router = hidden * experts;
  const of = (count: number) => router + (count + shared) * feedForward(hidden, width);
  return { all: of(experts), active: of(perToken) };
}

describe("the facts of a model", () => {
  it.each([
    ["gpt-oss-120b", gptOss()],
    ["deepseek-v3", deepseekV3()],
    ["minimax-m2", minimaxM2()],
  ])("%s are what its shapes come to: weights within 4 %%, layers and KV memory exactly", (name, shapes) => {
    const facts = MODELS[name]!;
    expect({ layers: facts.layers, kv: facts.kvNumbersPerToken }).toEqual({
      layers: shapes.layers,
      kv: shapes.kvNumbersPerToken,
    });
    for (const key of ["parameters", "activeParameters"] as const)
      expect(Math.abs(facts[key] / shapes[key] - 1), `${key}: ${shapes[key]}`).toBeLessThan(0.04);
  });
});

function gptOss(): ModelFacts {
  const [layers, hidden, vocabulary] = [36, 2880, 201_088];
  const { all, active } = expertLayer({ hidden, width: 2880, experts: 128, perToken: 4, shared: 0 });
  const perLayer = attention(hidden, 64, 8, 64);
  // Cards count the embedding among the parameters, and not among the active ones: a token reads one row of it.
  const head = vocabulary * hidden;
  return {
    parameters: 2 * head + layers * (perLayer + all),
    activeParameters: head + layers * (perLayer + active),
    layers,
    // Full attention and a window take turns, the window first.
    kvNumbersPerToken: 2 * (layers / 2) * 8 * 64,
  };
}

function deepseekV3(): ModelFacts {
  const [layers, dense, hidden, vocabulary, heads] = [61, 3, 7168, 129_280, 128];
  const { all, active } = expertLayer({ hidden, width: 2048, experts: 256, perToken: 8, shared: 1 });
  const [queryRank, kvRank, positional, plain, value] = [1536, 512, 64, 128, 128];
  const perLayer =
    hidden * queryRank +
    queryRank * heads * (plain + positional) +
    hidden * (kvRank + positional) +
    kvRank * heads * (plain + value) +
    heads * value * hidden;
  const denseLayers = dense * feedForward(hidden, 18_432);
  const head = vocabulary * hidden;
  return {
    parameters: 2 * head + layers * perLayer + denseLayers + (layers - dense) * all,
    activeParameters: head + layers * perLayer + denseLayers + (layers - dense) * active,
    layers,
    kvNumbersPerToken: layers * (kvRank + positional),
  };
}

function minimaxM2(): ModelFacts {
  const [layers, hidden, vocabulary] = [62, 3072, 200_064];
  const { all, active } = expertLayer({ hidden, width: 1536, experts: 256, perToken: 8, shared: 0 });
  const perLayer = attention(hidden, 48, 8, 128);
  const head = vocabulary * hidden;
  return {
    parameters: 2 * head + layers * (perLayer + all),
    activeParameters: head + layers * (perLayer + active),
    layers,
    kvNumbersPerToken: 2 * layers * 8 * 128,
  };
}
