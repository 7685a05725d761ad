import type { FittedProfile } from "@guidevane/signals";

/** Checks what a fit promises, from the coefficients as they are printed. */
export function shapeOf({ ttftMs, tbotMs }: Pick<FittedProfile, "ttftMs" | "tbotMs">): {
  readonly convex: boolean;
  readonly nonDecreasing: boolean;
} {
  const slopes = [ttftMs, tbotMs].map((knots) =>
    knots.slice(1).map(([at, ms], i) => (ms - knots[i]![1]) / (at - knots[i]![0])),
  );
  return {
    nonDecreasing: slopes.every((each) => each.every((slope) => slope >= 0)),
    convex: slopes.every((each) =>
      each.every((slope, i) => i === 0 || slope >= each[i - 1]! * (1 - ROUNDING) - ROUNDING),
    ),
  };
}

/** As the reader of profile files allows. */
const ROUNDING = 1e-9;
