import type { FitSource } from "@guidevane/signals";
import type { CurveFit } from "./command-profile.ts";
import { shapeOf } from "./profile-shape.ts";
import { showTable } from "./table.ts";

/** A person reads this many rows of a table; programs take --json. */
const MOST_ROWS = 40;

/** Fits for a person: one line a curve, and the errors in the middle of all. */
export function showFits(fits: readonly CurveFit[], left: Readonly<Record<string, number>>, msEach: number): string {
  const rows = fits.slice(0, MOST_ROWS).map(({ profile, at }) => {
    const { heldOutError: error, confidence, points, measured } = profile.source;
    return [
      profile.profile,
      String(points),
      `${show(profile.capacityWps)}${profile.source.saturation === "measured" ? "" : "?"}`,
      show(profile.ttftMs[0]![1]),
      show(profile.tbotMs[0]![1]),
      percent(error.ttft),
      percent(error.ttftP50),
      percent(error.ttftP99),
      percent(error.tbot),
      percent(error.e2e),
      `${Math.round(measured.from * 100)}–${Math.round(measured.to * 100)} %`,
      confidence,
      ...(at === null ? [] : [`${show(at.ttftMs)} / ${show(at.tbotMs)}${at.extrapolated ? " extrapolated" : ""}`]),
    ];
  });
  const at = fits[0]?.at ?? null;
  const head = ["profile", "levels", "work/s", "TTFT₀ ms", "TBOT₀ ms"];
  head.push("TTFT error", "p50", "p99", "TBOT error", "E2E error", "measured", "confidence");
  if (at !== null) head.push(`TTFT / TBOT ms at ${at.inFlight} in flight`);
  const parts = [showTable(head, rows)];
  if (fits.length > MOST_ROWS) parts.push(`… and ${fits.length - MOST_ROWS} more; --json has all\n`);
  if (fits.some(({ profile }) => profile.source.saturation !== "measured"))
    parts.push(
      "work/s with a ?: saturation was not seen; the capacity is reckoned, at most a quarter above what was\n",
    );
  parts.push(middle(fits, msEach));
  const past = fits.reduce((sum, { profile }) => sum + profile.source.pastSaturation, 0);
  const rest = past === 0 ? left : { ...left, "load levels past saturation": past };
  return [...parts, showLeft(rest)].join("");
}

/** What was left out and why, a line each. */
export function showLeft(left: Readonly<Record<string, number>>): string {
  return Object.entries(left)
    .map(([why, count]) => `left out: ${count} (${why})\n`)
    .join("");
}

function middle(fits: readonly CurveFit[], msEach: number): string {
  const shapes = fits.map(({ profile }) => shapeOf(profile));
  const convex = shapes.filter((shape) => shape.convex && shape.nonDecreasing).length;
  const errors = (of: "heldOutError" | "otherWorkloadError"): string => {
    const median = (name: keyof FitSource["heldOutError"]): string => {
      const known = fits.flatMap(({ profile }) => profile.source[of][name] ?? []).sort((a, b) => a - b);
      return known.length === 0 ? "none" : percent(known[known.length >> 1]!);
    };
    const ttft = `TTFT ${median("ttft")} (p50 ${median("ttftP50")}, p99 ${median("ttftP99")})`;
    return `${ttft}, TBOT ${median("tbot")}, E2E ${median("e2e")}`;
  };
  const others = fits.filter(({ profile }) => profile.source.otherWorkloadError.tbot !== undefined).length;
  return [
    `${fits.length} curves, ${convex} of them convex and non-decreasing, ${show(msEach)} ms each; `,
    `error at a load level left out of the fit, in the median curve: ${errors("heldOutError")}\n`,
    ...(others === 0
      ? []
      : [`error on a workload left out, in the median of ${others} curves: ${errors("otherWorkloadError")}\n`]),
  ].join("");
}

function show(value: number): string {
  return value
    .toPrecision(4)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

function percent(value: number | undefined): string {
  return value === undefined ? "–" : `${(value * 100).toFixed(1)} %`;
}
