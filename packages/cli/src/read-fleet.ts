import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { type Fleet, GuidevaneError, loadFleet, type Profile, parseProfile } from "@guidevane/core";

/**
 * A fleet file and the files that it names; their paths are relative to it.
 *
 * @throws GuidevaneError `bad_fleet`, `bad_profile`, `bad_network`; `bad_usage` when the file can't be read
 */
export async function readFleet(path: string): Promise<Fleet> {
  const folder = dirname(resolve(path));
  return loadFleet(await readInput("fleet file", path), path, (named) => readFile(resolve(folder, named), "utf8"));
}

/** @throws GuidevaneError `bad_profile`; `bad_usage` when the file can't be read */
export async function readProfile(path: string): Promise<Profile> {
  return parseProfile(await readInput("profile file", path), path);
}

export async function readInput(name: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new GuidevaneError("bad_usage", `${name}: can't read ${JSON.stringify(path)} (${why})`, { cause: error });
  }
}
