/**
 * vLLM's `/metrics` (names and buckets as vLLM 0.32 gives them), from counts that the emulated engine keeps, and one gauge
 * that real engines have no word for: ready replicas.
 */
export class VllmMetrics {
  promptTokens = 0;
  generationTokens = 0;
  readonly finished: { stop: number; length: number; abort: number } = { stop: 0, length: 0, abort: 0 };
  readonly ttftSeconds: Histogram = new Histogram(TTFT_BUCKETS);
  readonly tokenSeconds: Histogram = new Histogram(TOKEN_BUCKETS);
  readonly requestSeconds: Histogram = new Histogram(REQUEST_BUCKETS);

  /** Prometheus text, format 0.0.4. */
  text(modelName: string, now: Gauges): string {
    const labels = `engine="0",model_name="${escapeLabel(modelName)}"`;
    const lines: string[] = [];
    const single = (name: string, type: "gauge" | "counter", help: string, value: number) =>
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, `${name}{${labels}} ${value}`);
    single("vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", now.running);
    single("vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", now.waiting);
    single("vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", now.kvUsage);
    // An emulated request is never thrown out again, and a page without the series would be no vLLM's.
    single("vllm:num_preemptions_total", "counter", "Cumulative number of preemptions.", 0);
    single("vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", this.promptTokens);
    single("vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", this.generationTokens);
    lines.push("# HELP vllm:request_success_total Count of finished requests.");
    lines.push("# TYPE vllm:request_success_total counter");
    for (const [reason, count] of Object.entries(this.finished))
      lines.push(`vllm:request_success_total{finished_reason="${reason}",${labels}} ${count}`);
    const histogram = (name: string, help: string, values: Histogram) =>
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} histogram`, ...values.lines(name, labels));
    histogram("vllm:time_to_first_token_seconds", "Time to first token in seconds.", this.ttftSeconds);
    histogram("vllm:inter_token_latency_seconds", "Inter-token latency in seconds.", this.tokenSeconds);
    histogram("vllm:e2e_request_latency_seconds", "End to end request latency in seconds.", this.requestSeconds);
    single("guidevane_emulator_ready_replicas", "gauge", "Replicas that take requests.", now.readyReplicas);
    return `${lines.join("\n")}\n`;
  }
}

export interface Gauges {
  readonly running: number;
  readonly waiting: number;
  /** 0..1. */
  readonly kvUsage: number;
  readonly readyReplicas: number;
}

/** Cumulative buckets, as Prometheus wants them. */
class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  record(value: number): void {
    const at = this.#bounds.findIndex((bound) => value <= bound);
    this.#counts[at === -1 ? this.#bounds.length : at]! += 1;
    this.#sum += value;
  }

  lines(name: string, labels: string): string[] {
    let total = 0;
    const lines = this.#counts.map((count, index) => {
      total += count;
      const bound = this.#bounds[index];
      return `${name}_bucket{${labels},le="${bound === undefined ? "+Inf" : bound.toFixed(3).replace(/0{1,2}$/, "")}"} ${total}`;
    });
    return [...lines, `${name}_sum{${labels}} ${this.#sum}`, `${name}_count{${labels}} ${total}`];
  }
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

const TTFT_BUCKETS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
];
const TOKEN_BUCKETS = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const REQUEST_BUCKETS = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
