import { GuidevaneError } from "@guidevane/core";
import type { Workload } from "../workload.ts";
import { readAgentic } from "./agentic.ts";
import { readAzure } from "./azure.ts";
import { readMooncake } from "./mooncake.ts";
import { readOwnTrace } from "./own-trace.ts";
import { readServegen } from "./servegen.ts";
import type { TraceOptions } from "./trace-options.ts";

export interface ReadTraceOptions extends TraceOptions {
  /** For traces of rates only: which model's, and times how much. */
  readonly model: string | null;
  readonly scale: number;
  /** For traces without sizes. */
  readonly size: { readonly promptTokens: number; readonly outputTokens: number };
}

/**
 * A trace of any known form, told by its first line.
 *
 * @throws GuidevaneError `bad_trace` for a form that isn't known, or naming the line that is wrong
 */
export function readTrace(text: string, options: ReadTraceOptions): Workload {
  const first = text.slice(0, 4096).split("\n")[0] ?? "";
  if (first.includes("ContextTokens")) return readAzure(text, options);
  if (first.includes('"hash_ids"')) return readMooncake(text, options);
  if (first.includes('"block_runs"')) return readAgentic(text, options);
  if (first.includes("window_start_s") && first.includes("rate_rps")) return readServegen(text, options, options.size);
  if (first.includes("prompt_tokens") && first.includes("t_s")) return readOwnTrace(text, options);
  throw new GuidevaneError(
    "bad_trace",
    `${options.name}: its first line is of no known form (Azure, Mooncake, agentic sessions, ServeGen rates, or t_s, prompt_tokens, output_tokens): ${JSON.stringify(first.slice(0, 80))}`,
  );
}
