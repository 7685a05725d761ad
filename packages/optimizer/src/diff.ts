import type { Publication } from "@guidevane/core";
import { changesOf } from "./diff-changes.ts";
import { type Mixed, mix } from "./diff-mix.ts";
import { INPUT_KINDS, type InputKind, readSide, type Weights } from "./diff-side.ts";
import { shareEqually } from "./equal-engines.ts";
import type { Solution } from "./problem.ts";
import { createSimplex } from "./simplex/choose.ts";

export interface Diff {
  readonly from: number;
  readonly to: number;
  /** What the later one was published for, to be read after "because"; null = not known. */
  readonly why: string | null;
  /** What changed, a sentence each. */
  readonly changed: Readonly<Record<InputKind, readonly string[]>>;
  /** Weights that differ, the most requests first. */
  readonly weights: readonly ExplainedMove[];
}

export interface ExplainedMove {
  readonly cluster: string;
  readonly class: string;
  readonly engine: string;
  readonly before: number;
  readonly after: number;
  /** How much of the move each input explains; with `rest` (roundings, publications between, pins) they sum to it. */
  readonly parts: Readonly<Record<InputKind | "rest", number>>;
}

/**
 * What changed between two publications, and how much of each weight's move each input explains. The inputs are changed
 * one kind after another, and the fleet is solved again after each, always priced as a move from the first publication's
 * weights: what a kind explains is how the weights move at its step. Eligibility is who may serve what and who there is,
 * capacity what engines hold, network the round trips, work what requests and curves are, demand how many come and what
 * their mix makes of the curves.
 */
export function diff(
  before: Publication & { readonly version?: number },
  after: Publication & { readonly version?: number },
): Diff {
  const [a, b] = [readSide(before), readSide(after)];
  const taken = new Set<InputKind>();
  const simplex = createSimplex("auto");
  const changed = changesOf(a, b);
  const steps: Weights[] = [a.weights];
  for (const kind of INPUT_KINDS) {
    taken.add(kind);
    if (changed[kind].length === 0) {
      steps.push(steps.at(-1)!);
      continue;
    }
    const mixed = mix(a, b, taken);
    steps.push(weightsOf(mixed, shareEqually<Solution>(mixed.problem, simplex.solve(mixed.problem))));
  }
  steps.push(b.weights);
  return {
    from: before.version ?? 0,
    to: after.version ?? 0,
    why: after.why ?? null,
    changed,
    weights: explainMoves(steps, b.demandRps),
  };
}

/** Flows below this part of a cell are none. */
const NOTHING = 1e-9;

function weightsOf({ problem, cells, engines }: Mixed, { flowWps }: Solution): Weights {
  const weights = new Map<string, Map<string, number>>();
  for (const [cell, name] of cells.entries()) {
    const [start, end] = [problem.arcStart[cell]!, problem.arcStart[cell + 1]!];
    const served = flowWps.subarray(start, end).reduce((sum, flow) => sum + flow, 0);
    const own = new Map<string, number>();
    for (let arc = start; arc < end; arc++) {
      const weight = served > 0 ? flowWps[arc]! / served : 0;
      if (weight > NOTHING) own.set(engines[problem.arcEngine[arc]!]!, weight);
    }
    weights.set(name, own);
  }
  return weights;
}

/** Moves of less are not worth a line: a fraction of a slot. */
const STILL = 1e-6;

function explainMoves(steps: readonly Weights[], demandRps: ReadonlyMap<string, number>): ExplainedMove[] {
  const [first, last] = [steps[0]!, steps.at(-1)!];
  const moves: (ExplainedMove & { readonly rps: number })[] = [];
  for (const name of new Set([...first.keys(), ...last.keys()])) {
    const [cluster, requestClass] = name.split("\n") as [string, string];
    for (const engine of new Set(steps.flatMap((step) => [...(step.get(name)?.keys() ?? [])]))) {
      const at = steps.map((step) => step.get(name)?.get(engine) ?? 0);
      const part = (step: number): number => at[step + 1]! - at[step]!;
      const [before, after] = [at[0]!, at.at(-1)!];
      if (at.every((weight) => Math.abs(weight - before) < STILL)) continue;
      const parts = {
        eligibility: part(0),
        capacity: part(1),
        network: part(2),
        work: part(3),
        demand: part(4),
        rest: part(5),
      };
      const rps = Math.abs(after - before) * (demandRps.get(name) ?? 0);
      moves.push({ cluster, class: requestClass, engine, before, after, parts, rps });
    }
  }
  moves.sort((one, other) => other.rps - one.rps);
  return moves.map(({ rps: _, ...move }) => move);
}
