import { Histogram } from "./metrics-page.ts";

/** What an emulated engine counts since it started, whatever names its kind gives it. Buckets are vLLM 0.32's. */
export class EngineStats {
  promptTokens = 0;
  /** Of them, those found in the cache. */
  cachedTokens = 0;
  generationTokens = 0;
  readonly finished: { stop: number; length: number; abort: number } = { stop: 0, length: 0, abort: 0 };
  readonly ttftSeconds: Histogram = new Histogram(TTFT_BUCKETS);
  readonly tokenSeconds: Histogram = new Histogram(TOKEN_BUCKETS);
  readonly requestSeconds: Histogram = new Histogram(REQUEST_BUCKETS);

  get succeeded(): number {
    return this.finished.stop + this.finished.length;
  }

  /** Of the prompt tokens, 0..1; 0 before the first. */
  get cachedShare(): number {
    return this.promptTokens > 0 ? this.cachedTokens / this.promptTokens : 0;
  }
}

const TTFT_BUCKETS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const TOKEN_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const REQUEST_BUCKETS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
