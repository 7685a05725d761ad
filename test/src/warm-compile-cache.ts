import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "./repository.ts";

let warming: ChildProcess | null = null;

/**
 * Programs that tests start are run from source: to read and compile it takes each of them a second of CPU. Node keeps what
 * it compiled (`NODE_COMPILE_CACHE`, set in `vitest.config.ts`), but writes it only when a process ends by itself, and tests
 * kill most of theirs. So one process loads all of the program, beside the first tests, and ends.
 */
export default function warmCompileCache(): (() => void) | undefined {
  // Each project of the configuration asks.
  if (warming !== null) return undefined;
  const load = LOADED.map((module) => `import ${JSON.stringify(module)};`).join(" ");
  const args = ["--conditions=@guidevane/source", "--input-type=module", "--eval", load];
  // From there all of them are found.
  warming = spawn(process.execPath, args, { cwd: join(root, "packages/cli"), stdio: ["ignore", "ignore", "inherit"] });
  return () => warming?.kill();
}

const LOADED = ["control", "gateway", "simulator", "store", "cli"].map((name) => `@guidevane/${name}`);
