/** One measured point of an engine under a steady load. */
export interface LoadPoint {
  /** Requests in flight, held by a closed loop or counted by Little's law in an open one. */
  readonly inFlight: number;
  /** Finished requests/s. */
  readonly ratePerS: number;
  /** Of an open loop where it is said apart: requests/s that were sent. More than finish are beyond the engine. */
  readonly offeredPerS: number | null;
  readonly ttftMs: number;
  readonly tbotMs: number;
  /** null = not measured. */
  readonly ttftP50Ms: number | null;
  readonly ttftP99Ms: number | null;
  /** Requests that it stands on; null = not said. */
  readonly requests: number | null;
}

/** What was measured: one deployment of one model under one workload. */
export interface LoadCurve {
  /** Names the deployment: all that makes its speed. */
  readonly deployment: Deployment;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** How the load was made: so many in flight, or so many a second. */
  readonly loop: "open" | "closed";
  /** Which statistic the times are, where the source says. */
  readonly statistic: "mean" | "p50" | "unspecified";
  /** By rising load, one for each level. */
  readonly points: readonly LoadPoint[];
  readonly source: string;
  /** Of a curve made of a log of requests. */
  readonly log?: LogFacts;
}

/** The curves of some measurements. */
export interface LoadCurves {
  readonly curves: readonly LoadCurve[];
  /** Rows or requests that no curve was made of, by why. */
  readonly left: Readonly<Record<string, number>>;
}

/** What a log of requests says beside its load levels. */
export interface LogFacts {
  readonly requests: number;
  /** Whether somebody said how the load was made. */
  readonly loop: "stated" | "inferred";
  /** Part of all prompt tokens that the engine had in its cache, 0..1. Prompt tokens elsewhere are the others. */
  readonly cachedPart: number;
  /** From requests of different prompts at low load; null = prompts are too alike. */
  readonly prefillMsPerTok: number | null;
  /** Between which nine of ten requests lie. */
  readonly promptTokens: { readonly from: number; readonly to: number };
  readonly outputTokens: { readonly from: number; readonly to: number };
}

export interface Deployment {
  readonly gpu: string;
  /** null = not said. */
  readonly gpuCount: number | null;
  readonly model: string;
  readonly precision: string;
  readonly engine: string;
  readonly engineVersion: string;
  readonly mode: string;
  readonly parallel: string;
}

/** The name of a deployment, the same for two curves of the same one. */
export function deploymentName({ gpu, gpuCount, ...rest }: Deployment): string {
  const { model, precision, engine, engineVersion, mode, parallel } = rest;
  const hardware = gpuCount === null ? gpu : `${gpuCount}x${gpu}`;
  return [hardware, model, precision, engine, engineVersion, mode, parallel].filter((part) => part !== "").join(" ");
}
