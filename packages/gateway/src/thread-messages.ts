import type { SharedState } from "@guidevane/selector";
import type { Address } from "./address.ts";
import type { CompiledSnapshot } from "./compiled-snapshots.ts";
import type { Decision } from "./decision.ts";
import type { ClassCounts } from "./demand.ts";
import type { MetricFigures } from "./metrics.ts";
import type { NewsMessage } from "./news-batch.ts";
import type { RequestSettings } from "./request-thread.ts";

/** What a request worker begins with; all of it plain data or shared memory. */
export interface WorkerStart {
  readonly selector: "native" | "ts";
  readonly state: SharedState;
  readonly retryMemory: SharedArrayBuffer;
  readonly streamMemory: SharedArrayBuffer;
  readonly thread: number;
  /** Of the thread that starts it: `clockOfThread`. */
  readonly clockZeroMs: number;
  /** Since the control plane's last word. */
  readonly controlSilentMs: number;
  readonly responseMemory: SharedArrayBuffer;
  readonly settings: RequestSettings;
  readonly first: CompiledSnapshot;
}

/** What the process says to a request worker. */
export type Order =
  | { readonly kind: "listen"; readonly address: Address }
  | { readonly kind: "use"; readonly compiled: CompiledSnapshot }
  | { readonly kind: "configure"; readonly settings: RequestSettings }
  | { readonly kind: "gateways"; readonly count: number }
  | { readonly kind: "control-heard" }
  | { readonly kind: "engine-died"; readonly engine: string }
  | { readonly kind: "metrics"; readonly ticket: number }
  | { readonly kind: "decision"; readonly ticket: number; readonly id: string }
  | { readonly kind: "stop"; readonly graceMs: number };

/** What a request worker says to the process. */
export type Word =
  | { readonly kind: "ready" }
  | { readonly kind: "listening"; readonly url: string }
  | { readonly kind: "not-listening"; readonly message: string; readonly code: string | undefined }
  /** What happened since the last time, in order. */
  | { readonly kind: "news"; readonly message: NewsMessage }
  | { readonly kind: "arrivals"; readonly arrived: ReadonlyMap<string, ClassCounts> }
  | { readonly kind: "metrics"; readonly ticket: number; readonly figures: MetricFigures }
  | { readonly kind: "decision"; readonly ticket: number; readonly decision: Decision | null }
  | { readonly kind: "stopped" };
