import { type Fleet, GuidevaneError, problem, showProblem } from "@guidevane/core";

/** Keys that listeners and connections were made with: they take effect when the gateway starts. */
const AT_START = [
  ["gateway.limits.headBytes", (fleet: Fleet) => fleet.gateway.limits.headBytes],
  ["gateway.limits.headMs", (fleet: Fleet) => fleet.gateway.limits.headMs],
  ["gateway.limits.connections", (fleet: Fleet) => fleet.gateway.limits.connections],
  ["gateway.timers.clientIdleMs", (fleet: Fleet) => fleet.gateway.timers.clientIdleMs],
  ["gateway.timers.connectMs", (fleet: Fleet) => fleet.gateway.timers.connectMs],
] as const;

/**
 * Keys whose change a running gateway can't take.
 *
 * @param bootstraps whether it routes by its own fleet file, having never had a snapshot
 */
export function restartKeys(before: Fleet, after: Fleet, bootstraps: boolean): string[] {
  const keys: string[] = AT_START.filter(([, value]) => value(before) !== value(after)).map(([key]) => key);
  if (!bootstraps) return keys;
  const shown = (map: ReadonlyMap<string, unknown>) => JSON.stringify([...map]);
  for (const key of ["engines", "classes"] as const)
    if (shown(before[key]) !== shown(after[key])) keys.push(`${key} (until the first snapshot comes)`);
  return keys;
}

/** @throws GuidevaneError `bad_fleet` when the fleet has no such cluster */
export function checkCluster(fleet: Fleet, cluster: string): void {
  if (fleet.clusters.has(cluster)) return;
  throw new GuidevaneError(
    "bad_fleet",
    showProblem(problem("unknown_name", "clusters", cluster, "the gateway's own cluster is not in the fleet file")),
  );
}
