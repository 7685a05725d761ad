import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Fleet, loadFleet, type Profile, parseProfile } from "@guidevane/core";
import { unreadable } from "./unreadable.ts";

/**
 * A fleet file and the files that it names; their paths are relative to it.
 *
 * @throws GuidevaneError `bad_fleet`, `bad_profile`, `bad_network`; `bad_usage` when the file can't be read
 */
export async function readFleet(path: string): Promise<Fleet> {
  return (await readFleetFiles(path)).fleet;
}

/** A fleet and the files that it was read from. */
export interface FleetFiles {
  readonly fleet: Fleet;
  /** Text by absolute path, the fleet file first. */
  readonly texts: ReadonlyMap<string, string>;
}

/** The same with the texts. @throws as `readFleet` */
export async function readFleetFiles(path: string): Promise<FleetFiles> {
  const folder = dirname(resolve(path));
  const texts = new Map([[resolve(path), await readInput("fleet file", path)]]);
  const fleet = await loadFleet(texts.get(resolve(path))!, path, async (named) => {
    const text = await readFile(resolve(folder, named), "utf8");
    texts.set(resolve(folder, named), text);
    return text;
  });
  return { fleet, texts };
}

/** @throws GuidevaneError `bad_profile`; `bad_usage` when the file can't be read */
export async function readProfile(path: string): Promise<Profile> {
  return parseProfile(await readInput("profile file", path), path);
}

export async function readInput(name: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw unreadable(name, path, error);
  }
}
