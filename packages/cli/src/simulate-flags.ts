import type { Fleet } from "@guidevane/core";
import type { Failure } from "@guidevane/simulator";
import { badUsage } from "./exit-code.ts";
import { knownIn } from "./known-in.ts";

/** A number of at least `least`. @throws GuidevaneError `bad_usage` */
export function numberFlag(flag: string, text: string, least: number): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  return value >= least && Number.isFinite(value)
    ? value
    : badUsage(flag, text, `must be a number of ${least} or more`);
}

export interface Origin {
  readonly cluster: string;
  readonly part: number;
  readonly shiftHours: number;
}

/**
 * `CLUSTER=PART[@HOURS]` each; none: by the fleet file's `demandRps`, else equal parts.
 *
 * @throws GuidevaneError `bad_usage`
 */
export function originsOf(fleet: Fleet, texts: readonly string[] | undefined): Origin[] {
  if (texts === undefined) {
    const rps = (cluster: string): number =>
      [...(fleet.demandRps.get(cluster)?.values() ?? [])].reduce((sum, each) => sum + each, 0);
    const clusters = [...fleet.clusters.keys()];
    const hasDemand = clusters.some((cluster) => rps(cluster) > 0);
    return clusters.map((cluster) => ({ cluster, part: hasDemand ? rps(cluster) : 1, shiftHours: 0 }));
  }
  return texts.map((text) => {
    const [, cluster, part, shift] = /^([^=]+)=([\d.]+)(?:@(-?[\d.]+))?$/.exec(text) ?? [];
    if (cluster === undefined) badUsage("--origin", text, "must be CLUSTER=PART or CLUSTER=PART@HOURS");
    knownIn("--origin", cluster!, "a cluster", fleet.clusters);
    return {
      cluster: cluster!,
      part: numberFlag("--origin", part!, 0),
      shiftHours: shift === undefined ? 0 : Number(shift),
    };
  });
}

/** What `--fail` takes, times in seconds from the start of what is counted. */
const FAILURES = {
  death: "death:ENGINE:AT:FOR",
  region: "region:REGION:AT:FOR",
  flapping: "flapping:ENGINE:AT:FOR:PERIOD",
  slowdown: "slowdown:ENGINE:AT:FOR:FACTOR",
  "cold-cache": "cold-cache:AT or cold-cache:ENGINE:AT",
  "control-down": "control-down:AT:FOR",
} as const;

/**
 * One failure, in one of the forms of `FAILURES`.
 *
 * @throws GuidevaneError `bad_usage`
 */
export function failureOf(text: string, startMs: number): Failure {
  const [kind, ...words] = text.split(":");
  if (kind === undefined || !Object.hasOwn(FAILURES, kind))
    return badUsage("--fail", text, `must be one of ${Object.values(FAILURES).join(", ")} (seconds)`);
  const form = FAILURES[kind as keyof typeof FAILURES];
  const number = (at: number, least = 0): number => {
    const value = Number(words[at]?.trim() || Number.NaN);
    return value >= least && Number.isFinite(value)
      ? value
      : badUsage("--fail", text, `must be ${form}, with numbers of ${least} or more`);
  };
  const ms = (at: number): number => 1000 * number(at);
  const from = (at: number): { readonly atMs: number } => ({ atMs: startMs + ms(at) });
  const name = words[0] ?? "";
  switch (kind as keyof typeof FAILURES) {
    case "death":
      return { kind: "death", engine: name, ...from(1), forMs: ms(2) };
    case "region":
      return { kind: "region", region: name, ...from(1), forMs: ms(2) };
    case "flapping":
      return { kind: "flapping", engine: name, ...from(1), forMs: ms(2), periodMs: Math.max(1, ms(3)) };
    case "slowdown":
      return { kind: "slowdown", engine: name, ...from(1), forMs: ms(2), factor: number(3, 0.01) };
    case "cold-cache":
      return words.length === 1 ? { kind: "cold-cache", ...from(0) } : { kind: "cold-cache", engine: name, ...from(1) };
    case "control-down":
      return { kind: "control-down", ...from(0), forMs: ms(1) };
  }
}
