import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What the published packages ask for; undici needs it. */
const NEEDED = [22, 19];

/**
 * Path of a Node that is new enough: the platform package that the lockfile pins, else the one running this.
 *
 * @throws Error saying what is missing
 */
export function findNode() {
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const folder = join(root, "node_modules", name);
  const pinned = join(folder, "bin", process.platform === "win32" ? "node.exe" : "node");
  if (existsSync(pinned)) {
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    if (isEnough(version)) return pinned;
  }
  if (isEnough(process.versions.node)) return process.execPath;
  throw new Error(
    `Node ${NEEDED.join(".")} or newer is needed. This is ${process.version}, and the package ${name} that would bring ` +
      "one is not installed: no build of it exists for this platform, or npm left optional dependencies out. Install Node 24.",
  );
}

export function isEnough(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
}

/** The environment of every program started here: that Node first in PATH, and no tool phones home. */
export function environment(node) {
  const path = [dirname(node), join(root, "node_modules", ".bin"), process.env.PATH ?? ""].join(delimiter);
  return { ...process.env, PATH: path, TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" };
}
