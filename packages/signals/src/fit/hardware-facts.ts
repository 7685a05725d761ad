/** What a GPU can do at most. */
export interface GpuFacts {
  readonly memoryBytes: number;
  readonly bytesPerS: number;
  /** Dense. */
  readonly bf16Flops: number;
  /** null = it has none: fp8 weights are multiplied as bf16. */
  readonly fp8Flops: number | null;
}

/** What a model costs: its weights, and what it keeps of a token. */
export interface ModelFacts {
  readonly parameters: number;
  /** Of a mixture of experts: those that one token goes through. */
  readonly activeParameters: number;
  readonly layers: number;
  /**
   * Numbers kept of one token in the KV memory: 2 · layers · KV heads · head size; of a latent attention layers · latent
   * size. Of layers only that keep every token: not linear ones, nor those that look back by a window.
   */
  readonly kvNumbersPerToken: number;
}

const gpu = (memoryBytes: number, bytesPerS: number, bf16Flops: number, fp8Flops: number | null): GpuFacts => ({
  memoryBytes,
  bytesPerS,
  bf16Flops,
  fp8Flops,
});

/**
 * Makers' figures as github.com/ai-dynamo/aiconfigurator has them in `systems/*.yaml` (Apache-2.0); a test holds them to its
 * values.
 */
export const GPUS: Readonly<Record<string, GpuFacts>> = {
  a30: gpu(25769803776, 0.933e12, 165e12, null),
  "a100-pcie": gpu(85899345920, 1.935e12, 312e12, null),
  a100: gpu(85899345920, 2.039e12, 312e12, null),
  l4: gpu(25769803776, 0.3e12, 121e12, 242e12),
  l40s: gpu(48305799168, 0.864e12, 362.05e12, 733e12),
  "h100-pcie": gpu(85899345920, 2e12, 756.5e12, 1513e12),
  h100: gpu(85899345920, 3.35e12, 989e12, 1978e12),
  h200: gpu(151397597184, 4.8e12, 989e12, 1978e12),
  b200: gpu(193273528320, 7.7e12, 2250e12, 4500e12),
  b300: gpu(288400343040, 7.75e12, 2250e12, 4500e12),
  gb200: gpu(198674743296, 8e12, 2500e12, 5000e12),
  gb300: gpu(298013687808, 8e12, 2500e12, 5000e12),
  "rtx-pro-6000": gpu(102641958912, 1.792e12, 467.8e12, 935.6e12),
};

const model = (
  parameters: number,
  activeParameters: number,
  layers: number,
  kvNumbersPerToken: number,
): ModelFacts => ({ parameters, activeParameters, layers, kvNumbersPerToken });

/**
 * Layers and heads are those of the models' `config.json`: for Qwen3.5, Llama 3.3 and Kimi as aiconfigurator has them in
 * `model_configs`, for Qwen3 as several public repositories quote them, for DeepSeek, gpt-oss and MiniMax as transformers has
 * them (`model-facts.test.ts`). For Llama 3.1 they are from the model's report and were compared with no file. Parameters
 * are the rounded ones of the models' cards; what the shapes come to is within 2 % of them (MiniMax's active ones: 4 %).
 */
export const MODELS: Readonly<Record<string, ModelFacts>> = {
  "llama-3.1-8b": model(8.03e9, 8.03e9, 32, 2 * 32 * 8 * 128),
  "llama-3.1-70b": model(70.6e9, 70.6e9, 80, 2 * 80 * 8 * 128),
  "llama-3.3-70b": model(70.6e9, 70.6e9, 80, 2 * 80 * 8 * 128),
  "qwen3-32b": model(32.8e9, 32.8e9, 64, 2 * 64 * 8 * 128),
  "qwen3-235b-a22b": model(235e9, 22e9, 94, 2 * 94 * 4 * 128),
  // Every fourth of its 60 layers has full attention.
  "qwen3.5-397b-a17b": model(397e9, 17e9, 60, 2 * 15 * 2 * 256),
  // Every second of its 36 layers looks back by 128 tokens only.
  "gpt-oss-120b": model(116.8e9, 5.1e9, 36, 2 * 18 * 8 * 64),
  "deepseek-v3": model(671e9, 37e9, 61, 61 * 576),
  "deepseek-r1": model(671e9, 37e9, 61, 61 * 576),
  "kimi-k2": model(1030e9, 32e9, 61, 61 * 576),
  "minimax-m2": model(230e9, 10e9, 62, 2 * 62 * 8 * 128),
};

/** Bytes of a weight, scales included, and of a number in the KV memory. */
export const PRECISIONS: Readonly<Record<string, { readonly weightBytes: number; readonly kvBytes: number }>> = {
  bf16: { weightBytes: 2, kvBytes: 2 },
  fp8: { weightBytes: 1, kvBytes: 1 },
  fp4: { weightBytes: 0.56, kvBytes: 1 },
  int4: { weightBytes: 0.56, kvBytes: 1 },
};
