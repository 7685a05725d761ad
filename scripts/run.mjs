// The one way in: `node scripts/run.mjs up|test|fuzz|stress|build [arguments]`, from a fresh clone with nothing installed before.
// It installs what the lockfile says, builds what changed and starts the program under a Node that is new enough. The
// Node that runs this file may be an older one, so nothing here needs a package or a Node above 18.
import { constants } from "node:os";
import { build } from "./build.mjs";
import { environment, findNode, root } from "./find-node.mjs";
import { install } from "./install.mjs";
import { withLock } from "./lock.mjs";
import { start } from "./start.mjs";

const programs = {
  up: ["packages/cli/dist/main.js", "up"],
  test: ["node_modules/vitest/vitest.mjs", "run"],
  fuzz: ["--expose-gc", "--conditions=@guidevane/source", "packages/gateway/src/testing/fuzz/main.ts"],
  stress: ["--conditions=@guidevane/source", "scripts/stress/main.ts"],
  build: undefined,
};

const [command = "", ...args] = process.argv.slice(2);
if (!Object.hasOwn(programs, command)) {
  console.error(`run.mjs: no command ${JSON.stringify(command)}; there are ${Object.keys(programs).join(", ")}`);
  process.exit(2);
}

try {
  // One at a time: two calls would install over each other's node_modules.
  const node = await withLock(`${root}/.guidevane/setup.lock`, async () => {
    await install();
    const found = findNode();
    await build(found);
    return found;
  });
  const program = programs[command];
  if (program !== undefined) {
    const end = await start(node, [...program, ...args], { cwd: root, env: environment(node) });
    // The program's own end is this one's: its exit code, or the signal that ended it.
    process.exitCode = end.signal === null ? end.code : 128 + constants.signals[end.signal];
  }
} catch (error) {
  console.error(`run.mjs: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
