import type { Fleet } from "@guidevane/core";
import type { PolicyDefinition, PolicyValues } from "./policy.ts";
import type { Workload } from "./workload.ts";

/** One run of the lab: a fleet, its requests, the policy that routes them, and what goes wrong meanwhile. */
export interface LabOptions {
  readonly fleet: Fleet;
  readonly workload: Workload;
  /** The fleet as policies believe it to be, of the same engines and clusters; what it really is when left out. */
  readonly believed?: Fleet;
  readonly policy: PolicyDefinition;
  /** Values of its parameters; those left out are its defaults. */
  readonly values?: PolicyValues;
  readonly seed: number;
  readonly gatewaysPerCluster?: number;
  /** KV memory of one replica, tokens. Infinite = never full. */
  readonly kvTokens?: number;
  /** Requests that an engine's replica lets wait before it answers 503. Infinite = all. */
  readonly maxWaiting?: number;
  readonly signals?: { readonly everyMs: number; readonly delayMs: number };
  /** From the control plane's publication to the gateways' routing by it, ms. */
  readonly snapshotDelayMs?: number;
  readonly client?: ClientOptions;
  readonly failures?: readonly Failure[];
  /** Requests that arrive before are simulated, not counted. */
  readonly warmupMs?: number;
  /** The end of arrivals; those under way then are let finish. Default: all of the workload. */
  readonly untilMs?: number;
  /** Between two points of the series over time, ms. */
  readonly sampleMs?: number;
  /** Told how far the run is, 0..1, now and then. */
  readonly onProgress?: (part: number) => void;
}

export interface ClientOptions {
  /** After so long without a first token the client gives up; 0 = never. */
  readonly timeoutMs: number;
  /** Whether giving up closes the connection, so that the engine lets go; else it works on for nobody. */
  readonly cancels: boolean;
  /** In all, the first included. */
  readonly attempts: number;
  readonly backoffMs: number;
  /** Retries for each first attempt that all clients together may make. Left out: no budget but `attempts`. */
  readonly retryRatio?: number;
}

/** Something that goes wrong at `atMs` and, where it can, ends `forMs` later. */
export type Failure =
  | { readonly kind: "death"; readonly engine: string; readonly atMs: number; readonly forMs: number }
  | { readonly kind: "region"; readonly region: string; readonly atMs: number; readonly forMs: number }
  /** Dead for one half of each `periodMs`, alive for the other. */
  | {
      readonly kind: "flapping";
      readonly engine: string;
      readonly atMs: number;
      readonly forMs: number;
      readonly periodMs: number;
    }
  | {
      readonly kind: "slowdown";
      readonly engine: string;
      readonly factor: number;
      readonly atMs: number;
      readonly forMs: number;
    }
  /** Caches are empty from one moment to the next. `engine` left out: all. */
  | { readonly kind: "cold-cache"; readonly engine?: string; readonly atMs: number }
  /** Nothing is planned, published or said to gateways. */
  | { readonly kind: "control-down"; readonly atMs: number; readonly forMs: number };
