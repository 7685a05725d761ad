import { z } from "zod";
import { type Knots, valueAt } from "./curve.ts";
import { parseBy, parseYaml, refuse } from "./document.ts";
import { type InputProblem, problem } from "./errors.ts";

/** Measured latency curves of one (SKU, model, precision) and the load that it can hold. */
export interface Profile {
  readonly profile: string;
  readonly sku: string | null;
  readonly model: string | null;
  readonly precision: string | null;
  /** The request that is 1.0 unit of work. */
  readonly reference: { readonly promptTokens: number; readonly outputTokens: number };
  /** Units of work per 1,000 uncached prompt tokens and per 1,000 output tokens. */
  readonly work: { readonly prefillPerKtok: number; readonly decodePerKtok: number };
  /** Unloaded. */
  readonly prefillMsPerTok: number;
  readonly loop: "open" | "closed";
  /** Work units/s of one replica at utilisation 1. */
  readonly capacityWps: number;
  /** Mean TTFT of the reference request against utilisation; convex and non-decreasing. */
  readonly ttftMs: Knots;
  /** Mean time between output tokens against utilisation; convex and non-decreasing. */
  readonly tbotMs: Knots;
}

const positive = z.number().positive().finite();
const notNegative = z.number().nonnegative().finite();
const knots = z.array(z.tuple([notNegative, notNegative])).min(1);
const band = z.strictObject({ low: knots, high: knots });

/** The keys from `ttftP50Ms` on are for people and for what fits profiles: checked for their shape, and then left. */
const profileSchema = z.strictObject({
  profile: z.string().min(1),
  sku: z.string().optional(),
  model: z.string().optional(),
  precision: z.string().optional(),
  reference: z.strictObject({ promptTokens: positive, outputTokens: positive }),
  work: z.strictObject({ prefillPerKtok: notNegative, decodePerKtok: notNegative }),
  prefillMsPerTok: notNegative,
  loop: z.enum(["open", "closed"]),
  capacityWps: positive,
  ttftMs: knots,
  tbotMs: knots,
  ttftP50Ms: knots.optional(),
  ttftP99Ms: knots.optional(),
  tbotP50Ms: knots.optional(),
  tbotP99Ms: knots.optional(),
  band: z.strictObject({ ttftMs: band.optional(), tbotMs: band.optional() }).optional(),
  source: z.record(z.string(), z.unknown()).optional(),
});

const KNOWN_KEYS = new Set(Object.keys(profileSchema.shape));

/**
 * A profile file (YAML, `docs/fleet-file.md`) to a profile.
 *
 * @throws GuidevaneError `bad_profile`, naming each path and value
 */
export function parseProfile(text: string, name: string): Profile {
  const data = parseYaml(text, name, "bad_profile");
  const raw = parseBy(profileSchema, data, name, "bad_profile", KNOWN_KEYS);
  refuse("bad_profile", name, [
    ...curveProblems("ttftMs", raw.ttftMs),
    ...curveProblems("tbotMs", raw.tbotMs),
    ...referenceProblems(raw),
  ]);
  return {
    profile: raw.profile,
    sku: raw.sku ?? null,
    model: raw.model ?? null,
    precision: raw.precision ?? null,
    reference: raw.reference,
    work: raw.work,
    prefillMsPerTok: raw.prefillMsPerTok,
    loop: raw.loop,
    capacityWps: raw.capacityWps,
    ttftMs: raw.ttftMs,
    tbotMs: raw.tbotMs,
  };
}

/** Units of work of a request with these tokens, none of them cached. */
export function workOf(profile: Pick<Profile, "work">, promptTokens: number, outputTokens: number): number {
  return (promptTokens * profile.work.prefillPerKtok + outputTokens * profile.work.decodePerKtok) / 1000;
}

/** What a request takes at an idle engine, the network apart, ms: its first token, sooner or later by its prompt, and all others. */
export function idleMs(
  profile: Profile,
  request: { readonly promptTokens: number; readonly outputTokens: number },
): number {
  const longerPromptMs = profile.prefillMsPerTok * (request.promptTokens - profile.reference.promptTokens);
  return Math.max(0, valueAt(profile.ttftMs, 0) + longerPromptMs) + request.outputTokens * valueAt(profile.tbotMs, 0);
}

/**
 * The curve of an engine without a profile: a round guess (TTFT doubles at about two thirds of the load), here so that a
 * fleet can start before it is measured. `fleet check` names every engine that stands on it.
 */
export const GENERIC_PROFILE: Profile = {
  profile: "generic",
  sku: null,
  model: null,
  precision: null,
  reference: { promptTokens: 512, outputTokens: 256 },
  work: { prefillPerKtok: 0.703125, decodePerKtok: 2.5 },
  prefillMsPerTok: 0.1,
  loop: "open",
  capacityWps: 1,
  ttftMs: [
    [0, 60],
    [0.5, 90],
    [0.7, 130],
    [0.8, 180],
    [0.9, 320],
    [0.97, 700],
  ],
  tbotMs: [
    [0, 12],
    [0.5, 15],
    [0.8, 19],
    [0.9, 22],
    [0.97, 26],
  ],
};

const REFERENCE_TOLERANCE = 0.01;

function referenceProblems(raw: z.infer<typeof profileSchema>): InputProblem[] {
  const work = workOf(raw, raw.reference.promptTokens, raw.reference.outputTokens);
  if (Math.abs(work - 1) <= REFERENCE_TOLERANCE) return [];
  return [problem("invalid_value", "work", work, "the reference request must come to 1.0 unit of work within 1 %")];
}

/** Rounding of decimal knots must not make a straight line look concave. */
const SLOPE_TOLERANCE = 1e-9;

function curveProblems(path: string, points: Knots): InputProblem[] {
  const problems: InputProblem[] = [];
  if (points[0]?.[0] !== 0)
    problems.push(problem("invalid_value", `${path}.0`, points[0], "the first knot is at utilisation 0"));
  let lastSlope = 0;
  for (let i = 1; i < points.length; i++) {
    const [left, right] = [points[i - 1]!, points[i]!];
    if (right[0] <= left[0]) {
      problems.push(problem("invalid_value", `${path}.${i}`, right, "utilisation must rise from knot to knot"));
      continue;
    }
    const slope = (right[1] - left[1]) / (right[0] - left[0]);
    if (slope < 0) problems.push(problem("invalid_value", `${path}.${i}`, right, "the curve must not fall"));
    else if (slope < lastSlope * (1 - SLOPE_TOLERANCE) - SLOPE_TOLERANCE)
      problems.push(problem("invalid_value", `${path}.${i}`, right, "the curve must be convex: its slope falls here"));
    lastSlope = Math.max(lastSlope, slope);
  }
  return problems;
}
