import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { ABI, type NativeBinding } from "./binding.ts";
import { hostTriple } from "./triple.ts";

/** The addon's functions, or why there are none. */
export type NativeLoad =
  | { readonly binding: NativeBinding; readonly path: string }
  | {
      readonly binding: null;
      /** One sentence for the log. */
      readonly reason: string;
      /** Each place looked at, with what was found there. Empty when loading is turned off. */
      readonly tried: readonly string[];
    };

let loaded: NativeLoad | undefined;

/**
 * Loads the addon on the first call of this thread; later calls give the same answer. Never throws.
 * `GUIDEVANE_NATIVE=off` in the environment turns it off.
 */
export function loadNative(): NativeLoad {
  loaded ??= attemptLoad(process.env.GUIDEVANE_NATIVE);
  return loaded;
}

const require = createRequire(import.meta.url);

/** `loadNative` without the memory. `source` stands in for the file system and Node's `require`. */
export function attemptLoad(setting: string | undefined, source: AddonSource = nodeSource): NativeLoad {
  if (setting === "off") return { binding: null, reason: "turned off by GUIDEVANE_NATIVE=off", tried: [] };
  if (setting !== undefined && setting !== "" && setting !== "auto")
    return { binding: null, reason: `GUIDEVANE_NATIVE=${setting} is not a setting; known: off, auto`, tried: [] };
  const triple = source.triple();
  const tried: string[] = [];
  // The same relative path from src and from dist.
  const beside = fileURLToPath(new URL(`../guidevane.${triple}.node`, import.meta.url));
  for (const path of [beside, `@guidevane/native-${triple}`]) {
    const found = source.has(path) ? tryAddon(path, source) : "not there";
    if (typeof found !== "string") return { binding: found, path };
    tried.push(`${path}: ${found}`);
  }
  return { binding: null, reason: `no addon for ${triple}: ${tried.join("; ")}`, tried };
}

export interface AddonSource {
  triple(): string;
  /** A file, or a package whose name says nothing about where it is. */
  has(path: string): boolean;
  load(path: string): unknown;
}

const nodeSource: AddonSource = {
  triple: hostTriple,
  has(path) {
    if (!path.startsWith("@")) return existsSync(path);
    try {
      require.resolve(path);
      return true;
    } catch {
      return false;
    }
  },
  load: require,
};

function tryAddon(path: string, source: AddonSource): NativeBinding | string {
  try {
    const addon = source.load(path) as Partial<NativeBinding> | null;
    if (typeof addon?.abi !== "function") return "is not this addon";
    const abi = addon.abi();
    if (abi !== ABI) return `has ABI ${abi}, this package needs ${ABI}`;
    return addon as NativeBinding;
  } catch (error) {
    // The first line says it; dlopen and require add pages of places they looked at.
    return String(error instanceof Error ? error.message : error).split("\n")[0] ?? "";
  }
}
