import type { EngineStats } from "../engine-stats.ts";
import type { ApiError } from "../openai-answer.ts";

/** What one kind of engine says in its own words; the OpenAI API is the same for all. */
export interface EmulatedKind {
  readonly healthPath: string;
  /** What the health path answers with while all is well. */
  readonly healthy: string;
  readonly metricsPath: string;
  /** Prometheus text. */
  metrics(state: EngineState): string;
  /** Other pages of its own, JSON by path. */
  readonly pages: Readonly<Record<string, (state: EngineState) => string>>;
  /** Whether it refuses a model that it has not; the others answer as the one they have. */
  readonly checksModel: boolean;
  /** Whether a stream's 200 goes out at once, before it is known whether there will be an answer. */
  readonly headAtOnce: boolean;
  refusal(error: ApiError): { readonly status: number; readonly json: string };
  /** Body for a path that it has not. */
  readonly notFound: string;
}

/** How an emulated engine is now. */
export interface EngineState {
  readonly model: string;
  readonly running: number;
  readonly waiting: number;
  /** 0..1. */
  readonly kvUsage: number;
  readonly readyReplicas: number;
  readonly preemptions: number;
  /** Requests that its batches hold at most. */
  readonly slots: number;
  /** KV memory of all replicas. */
  readonly kvBlocks: number;
  readonly blockTokens: number;
  readonly stats: EngineStats;
}

/** The form of servers that follow the first OpenAI-compatible ones: an error without a wrapper. */
export function bareError({ message, type, param, status }: ApiError): { status: number; json: string } {
  return { status, json: JSON.stringify({ object: "error", message, type, param, code: status }) };
}

/** What servers made with FastAPI have in common, whatever engine is behind them. */
export const FASTAPI = {
  healthy: "",
  pages: {},
  checksModel: true,
  headAtOnce: true,
  notFound: JSON.stringify({ detail: "Not Found" }),
} satisfies Partial<EmulatedKind>;
