import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Fleet, loadFleet, type Profile } from "@guidevane/core";

const LAB_FLEET = fileURLToPath(new URL("../../../packages/cli/fleets/lab/fleet.yaml", import.meta.url));

/** The lab's own fleet: four regions, nine engines of three sizes. */
export async function labFleetFile(): Promise<Fleet> {
  return loadFleet(await readFile(LAB_FLEET, "utf8"), LAB_FLEET, (path) =>
    readFile(resolve(dirname(LAB_FLEET), path), "utf8"),
  );
}

/** The same fleet as it would be believed to be: every profile's added latency, and its capacity, off by its own factor. */
export function misbelieved(fleet: Fleet, factorOf: (profile: string) => { latency: number; capacity: number }): Fleet {
  const profiles = new Map(
    [...fleet.profiles].map(([name, profile]): [string, Profile] => {
      const { latency } = factorOf(name);
      const scale = (knots: Profile["ttftMs"]) => knots.map(([rho, ms]) => [rho, ms * latency] as const);
      return [
        name,
        {
          ...profile,
          prefillMsPerTok: profile.prefillMsPerTok * latency,
          ttftMs: scale(profile.ttftMs),
          tbotMs: scale(profile.tbotMs),
        },
      ];
    }),
  );
  const engines = new Map(
    [...fleet.engines].map(([id, engine]) => [
      id,
      { ...engine, capacityWps: engine.capacityWps * factorOf(engine.profile ?? "").capacity },
    ]),
  );
  return { ...fleet, profiles, engines };
}
