import { AggregatorRegistry, Counter, Gauge, Registry } from "prom-client";
import { Spread, Tally } from "./fast-metrics.ts";
import { nextTurn } from "./loop-turns.ts";

/** From a millisecond to the longest answers, in seconds. */
const LATENCY_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
/** From half a millisecond to a second between two tokens. */
const TBOT_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1];
/** Choosing an engine takes microseconds. */
const ROUTE_BUCKETS = [0.000001, 0.0000025, 0.000005, 0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.001, 0.01];

/** The gateway's metrics, CONTRACT §8. Labels hold names from the fleet only; anything else is `other`. */
export interface GatewayMetrics {
  readonly registry: Registry;
  readonly requests: Tally<"class", "outcome">;
  readonly attempts: Tally<"engine", "outcome">;
  readonly inFlight: Gauge<"engine">;
  readonly retries: Counter<"result">;
  readonly retryBudgetTokens: Gauge;
  readonly shed: Tally<"class", "reason">;
  readonly queueDepth: Gauge<"class">;
  readonly penaltyFactor: Gauge<"engine">;
  readonly routeSeconds: Spread;
  readonly ttftSeconds: Spread<"class">;
  readonly tbotSeconds: Spread<"class">;
  readonly tokens: Tally<"class", "kind">;
  readonly answersWithoutUsage: Tally<"class">;
  readonly answersUnread: Counter<"class">;
  readonly malformedEvents: Counter<"class">;
  readonly observerFailures: Counter;
  readonly decisionBytes: Gauge;
  readonly requestSeconds: Spread<"class">;
  readonly placed: Tally<"reason">;
  readonly snapshotVersion: Gauge;
  readonly snapshotAgeSeconds: Gauge;
  readonly snapshotRefused: Counter<"reason">;
  readonly native: Gauge;
}

export const OTHER = "other";

/** One thread's metrics as plain data. */
export type MetricFigures = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** What a thread counts, a metric in a turn: those with a label of thousands of names each take a while. */
export async function figuresOf(registry: Registry): Promise<MetricFigures> {
  const figures: MetricFigures = [];
  for (const metric of registry.getMetricsAsArray()) {
    if (figures.length > 0) await nextTurn();
    // What the types leave out: each metric tells its figures as the registry gives them.
    figures.push(await (metric as unknown as { get(): Promise<MetricFigures[number]> }).get());
  }
  return figures;
}

/** Adds what a thread had counted that has ended; not its gauges, for it holds nothing any more. */
export async function addEnded(ended: MetricFigures, figures: MetricFigures): Promise<MetricFigures> {
  // Its declaration has a number there; what it gives is the word.
  const counted = figures.filter(({ type }) => String(type) !== "gauge");
  return AggregatorRegistry.aggregate([ended, counted]).getMetricsAsJSON();
}

export function createMetrics(): GatewayMetrics {
  const registry = new Registry();
  const registers = [registry];
  return {
    registry,
    requests: new Tally({
      name: "guidevane_requests_total",
      help: "Requests by class and how they ended",
      labelNames: ["class", "outcome"],
      registers,
    }),
    attempts: new Tally({
      name: "guidevane_attempts_total",
      help: "Attempts at engines and how they ended",
      labelNames: ["engine", "outcome"],
      registers,
    }),
    inFlight: new Gauge({
      name: "guidevane_in_flight",
      help: "Attempts under way",
      labelNames: ["engine"],
      registers,
    }),
    retries: new Counter({
      name: "guidevane_retries_total",
      help: "Attempts after the first",
      labelNames: ["result"],
      registers,
    }),
    retryBudgetTokens: new Gauge({
      name: "guidevane_retry_budget_tokens",
      help: "Retries that may be made at once, of the model with the least",
      registers,
    }),
    queueDepth: new Gauge({
      name: "guidevane_queue_depth",
      help: "Requests that wait for room at the engines",
      labelNames: ["class"],
      registers,
    }),
    penaltyFactor: new Gauge({
      name: "guidevane_penalty_factor",
      help: "What penalties leave of an engine's share; 1 = none",
      labelNames: ["engine"],
      registers,
    }),
    shed: new Tally({
      name: "guidevane_shed_total",
      help: "Requests refused to protect the fleet",
      labelNames: ["class", "reason"],
      registers,
    }),
    routeSeconds: new Spread({
      name: "guidevane_route_seconds",
      help: "Time to choose an engine",
      buckets: ROUTE_BUCKETS,
      registers,
    }),
    ttftSeconds: new Spread({
      name: "guidevane_ttft_seconds",
      help: "From a stream's arrival to its first event with content",
      labelNames: ["class"],
      buckets: LATENCY_BUCKETS,
      registers,
    }),
    tbotSeconds: new Spread({
      name: "guidevane_tbot_seconds",
      help: "Mean time between the output tokens of a stream",
      labelNames: ["class"],
      buckets: TBOT_BUCKETS,
      registers,
    }),
    tokens: new Tally({
      name: "guidevane_tokens_total",
      help: "Tokens by the usage that engines told",
      labelNames: ["class", "kind"],
      registers,
    }),
    answersWithoutUsage: new Tally({
      name: "guidevane_answers_without_usage_total",
      help: "Good answers that told no usage, so that their tokens are not counted",
      labelNames: ["class"],
      registers,
    }),
    answersUnread: new Counter({
      name: "guidevane_answers_unread_total",
      help: "Good answers that were passed on without being read: compressed, or of an unknown type",
      labelNames: ["class"],
      registers,
    }),
    malformedEvents: new Counter({
      name: "guidevane_malformed_events_total",
      help: "Events of answers that are no JSON; passed on as they are",
      labelNames: ["class"],
      registers,
    }),
    observerFailures: new Counter({
      name: "guidevane_observer_failures_total",
      help: "Answers that were read no further for a fault of the gateway's own; passed on all the same",
      registers,
    }),
    decisionBytes: new Gauge({
      name: "guidevane_decision_log_bytes",
      help: "Memory set aside for the last decisions",
      registers,
    }),
    requestSeconds: new Spread({
      name: "guidevane_request_seconds",
      help: "From a request's arrival to the end of its answer",
      labelNames: ["class"],
      buckets: LATENCY_BUCKETS,
      registers,
    }),
    placed: new Tally({
      name: "guidevane_placed_total",
      help: "Why requests went where they went",
      labelNames: ["reason"],
      registers,
    }),
    snapshotVersion: new Gauge({
      name: "guidevane_snapshot_version",
      help: "Version of the snapshot in use; 0 = bootstrap",
      registers,
    }),
    snapshotAgeSeconds: new Gauge({
      name: "guidevane_snapshot_age_seconds",
      help: "Since the control plane's last answer",
      registers,
    }),
    snapshotRefused: new Counter({
      name: "guidevane_snapshot_refused_total",
      help: "Snapshots that failed a check",
      labelNames: ["reason"],
      registers,
    }),
    native: new Gauge({ name: "guidevane_native", help: "1 when the native router is in use", registers }),
  };
}
