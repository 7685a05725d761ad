import type { Fleet } from "@guidevane/core";
import type { Failure } from "@guidevane/simulator";
import { badUsage } from "./exit-code.ts";

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
    if (!fleet.clusters.has(cluster!)) badUsage("--origin", cluster, "is not a cluster of the fleet file");
    return {
      cluster: cluster!,
      part: numberFlag("--origin", part!, 0),
      shiftHours: shift === undefined ? 0 : Number(shift),
    };
  });
}

/**
 * One failure, times in seconds from the start of what is counted: `death:ENGINE:AT:FOR`, `region:REGION:AT:FOR`,
 * `flapping:ENGINE:AT:FOR:PERIOD`, `slowdown:ENGINE:AT:FOR:FACTOR`, `cold-cache[:ENGINE]:AT`, `control-down:AT:FOR`.
 *
 * @throws GuidevaneError `bad_usage`
 */
export function failureOf(text: string, startMs: number): Failure {
  const words = text.split(":");
  const kind = words[0];
  const ms = (at: number): number => 1000 * numberFlag("--fail", words[at] ?? "", 0);
  const name = words[1] ?? "";
  const timed = { atMs: startMs + ms(2 - (kind === "control-down" || words.length === 2 ? 1 : 0)) };
  switch (kind) {
    case "death":
      return { kind, engine: name, ...timed, forMs: ms(3) };
    case "region":
      return { kind, region: name, ...timed, forMs: ms(3) };
    case "flapping":
      return { kind, engine: name, ...timed, forMs: ms(3), periodMs: Math.max(1, ms(4)) };
    case "slowdown":
      return { kind, engine: name, ...timed, forMs: ms(3), factor: numberFlag("--fail", words[4] ?? "", 0.01) };
    case "cold-cache":
      return words.length === 2 ? { kind, ...timed } : { kind, engine: name, ...timed };
    case "control-down":
      return { kind, ...timed, forMs: ms(2) };
    default:
      return badUsage(
        "--fail",
        text,
        "begins with death, region, flapping, slowdown, cold-cache or control-down, as in death:ENGINE:AT:FOR (seconds)",
      );
  }
}
