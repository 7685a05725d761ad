import type { Workload } from "../workload.ts";
import { PERCENTILES, type PolicyFigures, type Slo } from "./figures.ts";
import { verdictOf } from "./verdict.ts";

/** A comparison of policies on one workload: what the page shows, and its JSON twin holds. */
export interface LabReport {
  readonly format: "guidevane-lab-report/1";
  readonly verdict: string;
  readonly command: string;
  readonly fleet: string;
  readonly seed: number;
  readonly slo: Slo;
  /** What went wrong, how clients behave, what was tuned; a sentence each. */
  readonly conditions: readonly string[];
  readonly workload: {
    readonly name: string;
    readonly requests: number;
    readonly assumptions: readonly string[];
  };
  /** What the curves of the policies are at. */
  readonly percentiles: readonly number[];
  readonly policies: readonly PolicyFigures[];
}

export interface ReportFacts {
  readonly command: string;
  readonly fleet: string;
  readonly seed: number;
  readonly slo: Slo;
  readonly conditions: readonly string[];
  readonly workload: Workload;
}

export function reportOf({ workload, ...facts }: ReportFacts, policies: readonly PolicyFigures[]): LabReport {
  return {
    format: "guidevane-lab-report/1",
    verdict: verdictOf(policies),
    ...facts,
    workload: { name: workload.name, requests: workload.size, assumptions: workload.assumptions },
    percentiles: PERCENTILES,
    policies,
  };
}
