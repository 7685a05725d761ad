import { GuidevaneError } from "@guidevane/core";
import type { NativeBinding } from "./binding.ts";
import { loadNative, type NativeLoad } from "./load.ts";

/** Which twin to run: the addon's, TypeScript's, or the addon's where it is there. */
export type Want = "auto" | "native" | "ts";

/** The addon, or null for the TypeScript twin; `degraded` says why where `auto` fell back to it. */
export type Choice = { readonly binding: NativeBinding } | { readonly binding: null; readonly degraded?: string };

/**
 * Settles `want` for one piece that has twins.
 *
 * @param what the piece, for the error: `router`
 * @throws GuidevaneError `native_unavailable` when `want` is `native` and there is no addon
 */
export function chooseTwin(want: Want, what: string, native: () => NativeLoad = loadNative): Choice {
  if (want === "ts") return { binding: null };
  const load = native();
  if (load.binding !== null) return { binding: load.binding };
  if (want === "native") throw new GuidevaneError("native_unavailable", `no native ${what}: ${load.reason}`);
  return { binding: null, degraded: load.reason };
}
