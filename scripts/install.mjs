import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { root } from "./find-node.mjs";
import { capture } from "./start.mjs";

/** Runs `npm ci` unless node_modules already holds what the lockfile says. @throws Error with npm's own words */
export async function install() {
  const wanted = readJson("package-lock.json");
  if (wanted === undefined) throw new Error("package-lock.json is missing or is not JSON");
  const reason = staleness(wanted, readJson("node_modules/.package-lock.json"));
  if (reason === undefined) return;
  console.error(`installing packages (${reason})`);
  const [command, args] = npm();
  // A NODE_ENV of production would leave out the compiler; --omit in someone's own settings would leave out Node.
  const all = [...args, "ci", "--include=dev", "--include=optional", "--loglevel=error", "--no-progress"];
  const { code, output } = await capture(command, all, { cwd: root, env: process.env });
  if (code !== 0) throw new Error(`npm ci failed (exit ${code}):\n${output.trimEnd()}`);
}

/**
 * Why node_modules is not what the lockfile says, or undefined where it is. `present` is the list that npm writes last
 * when it installs, so that an install broken off half way shows as missing.
 */
export function staleness(wanted, present) {
  if (present === undefined) return "nothing is installed yet";
  for (const [path, entry] of Object.entries(wanted.packages)) {
    if (path === "") continue;
    const found = present.packages[path];
    if (found === undefined) {
      // Packages for other platforms are in the lockfile and not on the disk.
      if (entry.optional !== true && entry.devOptional !== true) return `${path} is new`;
    } else if (found.version !== entry.version || found.integrity !== entry.integrity) {
      return `${path} has changed`;
    }
  }
  const gone = Object.keys(present.packages).find((path) => wanted.packages[path] === undefined);
  return gone === undefined ? undefined : `${gone} is no longer wanted`;
}

/** The npm that started this, else the one in PATH. */
function npm() {
  const path = process.env.npm_execpath;
  if (path !== undefined && basename(path) === "npm-cli.js") return [process.execPath, [path]];
  return [process.platform === "win32" ? "npm.cmd" : "npm", []];
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
