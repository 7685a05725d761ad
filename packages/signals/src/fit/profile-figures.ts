import type { Knots } from "@guidevane/core";

export interface Band {
  readonly low: Knots;
  readonly high: Knots;
}

export function bandOf(knots: Knots, spread: number): Band {
  const scaled = (factor: number): Knots => knots.map(([at, ms]) => [at, rounded(ms * factor)]);
  return { low: scaled(Math.max(0, 1 - spread)), high: scaled(1 + spread) };
}

/** Null of none. */
export function ninetieth(errors: readonly number[]): number | null {
  if (errors.length === 0) return null;
  const sorted = [...errors].sort((a, b) => a - b);
  return sorted[Math.ceil(0.9 * sorted.length) - 1]!;
}

/** To figures that a person reads, kept convex: a knot that rounding lifted above its neighbours' line is put on it. */
export function roundedKnots(knots: Knots): Knots {
  const result: [number, number][] = [];
  let slope = 0;
  for (const [at, ms] of knots) {
    const last = result.at(-1);
    if (last === undefined) {
      result.push([at, rounded(ms)]);
      continue;
    }
    const width = at - last[0];
    const next = Math.max(rounded(ms), last[1] + slope * width);
    slope = (next - last[1]) / width;
    result.push([at, next]);
  }
  return result;
}

export function rounded(value: number, digits = 6): number {
  return Number(value.toPrecision(digits));
}

export function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, "-")
    .replace(/^-+|-+$/g, "");
}

/**
 * Part of a request's work at capacity that reading its prompt is, 0..1: prefill is bound by arithmetic, and costs a token the
 * same in a full batch as at rest. An idle first token has more in it than prefill, so the estimate can pass the whole; some
 * of a request is decoding.
 */
export function prefillPart(promptTokens: number, prefillMsPerTok: number, capacityRps: number): number {
  return Math.min(0.9, (promptTokens * prefillMsPerTok * capacityRps) / 1000);
}

/** Of work a token, in units. */
export function workOf(
  prompt: number,
  output: number,
): { readonly prefillPerKtok: number; readonly decodePerKtok: number } {
  return { prefillPerKtok: rounded(prompt * 1000), decodePerKtok: rounded(output * 1000) };
}
