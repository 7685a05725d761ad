import type { PrometheusPage } from "../prometheus-text.ts";
import type { Dialect, Reading, Said } from "./dialect.ts";
import { counterNames, counterOf, firstOf, NO_COUNTS, sumOf } from "./series.ts";

/**
 * llama.cpp's server (`--metrics`), names from its README and recorded pages. How full its cache is it says no more: the part
 * of its slots that are busy, at `/slots`, stands for it.
 */
export const llamacppDialect: Dialect = {
  kind: "llamacpp",
  wants: (name) => WANTED.has(name),
  read(page: PrometheusPage): Reading {
    return {
      signals: {
        running: sumOf(firstOf(page, ["llamacpp:requests_processing"])),
        waiting: sumOf(firstOf(page, ["llamacpp:requests_deferred"])),
        kvUsage: "not-offered",
        readyReplicas: "not-offered",
      },
      counters: {
        promptTokens: counterOf(page, "llamacpp:prompt_tokens"),
        generationTokens: counterOf(page, "llamacpp:tokens_predicted"),
        successes: NO_COUNTS,
      },
    };
  },
  aside: { path: "/slots", signal: "kvUsage", read: busySlots },
};

const WANTED: ReadonlySet<string> = new Set([
  ...["llamacpp:requests_processing", "llamacpp:requests_deferred"],
  ...counterNames(["llamacpp:prompt_tokens", "llamacpp:tokens_predicted"]),
]);

function busySlots(text: string): Said {
  let slots: unknown;
  try {
    slots = JSON.parse(text);
  } catch {
    return "missing";
  }
  if (!Array.isArray(slots) || slots.length === 0) return "missing";
  const busy = slots.map((slot: unknown) => (slot as { readonly is_processing?: unknown } | null)?.is_processing);
  if (!busy.every((each) => typeof each === "boolean")) return "missing";
  return busy.filter(Boolean).length / busy.length;
}
