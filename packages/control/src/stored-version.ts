import { GuidevaneError, type StoredPublication } from "@guidevane/core";
import { AdminError } from "./admin-http.ts";
import type { Control } from "./control.ts";

/** A publication from the store. @throws AdminError 404 where it is not kept, 409 where it is damaged */
export async function storedVersion({ store }: Control, version: number): Promise<StoredPublication> {
  let stored: StoredPublication | null;
  try {
    stored = await store.getVersion(version);
  } catch (error) {
    if (!GuidevaneError.is(error)) throw error;
    throw new AdminError(409, "version_damaged", `version ${version} can't be read: ${error.message}`);
  }
  if (stored !== null) return stored;
  const kept = await store.versions();
  const [newest, oldest] = [kept[0], kept.at(-1)];
  const range = newest === oldest ? `${newest ?? "none"}` : `${oldest} to ${newest}`;
  throw new AdminError(404, "unknown_version", `version ${version} is not kept; kept: ${range}`);
}
