import type { Fleet } from "@guidevane/core";
import {
  figuresOf,
  type LabOptions,
  POLICIES,
  type PolicyDefinition,
  type PolicyFigures,
  runLab,
  type SyntheticOptions,
  syntheticWorkload,
} from "@guidevane/simulator";
import { named } from "./show.ts";

export const SLO = { ttftMs: 1000, tbotMs: 40 };
/** KV memory of a replica, tokens: what `guidevane simulate` takes. */
export const KV_TOKENS = 1_000_000;

type Run = Partial<Omit<LabOptions, "policy">> & { readonly synthetic?: Partial<SyntheticOptions> };

/** One policy on synthetic conversations of the fleet. */
export function runOf(
  fleet: Fleet,
  policy: string | PolicyDefinition,
  { synthetic, ...options }: Run = {},
): PolicyFigures {
  const definition = typeof policy === "string" ? named(POLICIES, policy) : policy;
  const workload = options.workload ?? syntheticWorkload({ fleet, seed: 1, seconds: 300, ...synthetic });
  const run = runLab({ fleet, seed: 1, kvTokens: KV_TOKENS, ...options, workload, policy: definition });
  return figuresOf(run, definition, SLO);
}

export const ms = (value: number | undefined): string => (value === undefined ? "–" : value.toFixed(0));
export const percent = (part: number, digits = 1): string => `${(100 * part).toFixed(digits)} %`;
export const lost = (figures: PolicyFigures): number => figures.shedPart + figures.failedPart + figures.unansweredPart;
