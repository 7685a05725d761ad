import type { Knots } from "@guidevane/core";
import { z } from "zod";

/**
 * Q(ρ), the ms that load adds to a unit of work at utilisation ρ, by kind and parameters. Solvers work on straight pieces
 * between knots: `knots` and `linear` are taken as they are; smooth kinds become the chords between `CHORDS` + 1 points,
 * which lie above the curve and stay convex. Bound and gap are then of the chords.
 */
const positive = z.number().positive();
const notNegative = z.number().nonnegative();

export const curveSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("knots"),
    knots: z
      .array(z.tuple([notNegative, notNegative]))
      .min(1)
      .describe("[utilisation, ms], the first at utilisation 0; convex and non-decreasing"),
  }),
  z.strictObject({ kind: z.literal("linear"), ms: notNegative.describe("Q = ms·ρ") }),
  z.strictObject({
    kind: z.literal("power"),
    ms: notNegative.describe("Q = ms·ρ^exponent"),
    exponent: z.int().min(1).max(64),
  }),
  z.strictObject({
    kind: z.literal("queue"),
    ms: notNegative.describe("Q = ms·(linear·ρ + v^exponent ÷ (servers·(1 − v))), v = ρ/pole"),
    linear: notNegative.default(0),
    exponent: z.int().min(1).max(64),
    servers: positive,
    pole: z.number().gt(1).describe("Utilisation at which the wait has no bound; above 1"),
  }),
]);

export type CurveKind = z.infer<typeof curveSchema>;

/** Straight pieces of a smooth kind. 128 of them, finer towards full load, keep the chords within 1 % of the curve above a utilisation of 0.2. */
const CHORDS = 128;

/** The knots of a curve of any kind, over utilisation 0 to 1. */
export function curveKnots(curve: CurveKind): Knots {
  switch (curve.kind) {
    case "knots":
      return curve.knots;
    case "linear":
      return [
        [0, 0],
        [1, curve.ms],
      ];
    case "power":
      return chords((rho) => curve.ms * rho ** curve.exponent);
    case "queue":
      return chords((rho) => {
        const v = rho / curve.pole;
        return curve.ms * (curve.linear * rho + v ** curve.exponent / (curve.servers * (1 - v)));
      });
  }
}

function chords(value: (rho: number) => number): Knots {
  return Array.from({ length: CHORDS + 1 }, (_, at) => {
    const gone = 1 - at / CHORDS;
    const rho = 1 - gone * gone;
    return [rho, value(rho)] as const;
  });
}
