import { existsSync } from "node:fs";
import { join } from "node:path";
import { environment, root } from "./find-node.mjs";
import { capture } from "./start.mjs";

/**
 * Builds what has changed: every package's dist, and the addon where cargo is. Says nothing of what went well, and hands
 * on what the addon's build says (one line where there is no cargo).
 *
 * @throws Error with the compiler's words
 */
export async function build(node) {
  const options = { cwd: root, env: environment(node) };
  if (!existsSync(join(root, "packages", "cli", "dist", "main.js")))
    process.stderr.write(
      "building the packages, and the native addon where cargo is: the first time takes some minutes\n",
    );
  const turbo = join(root, "node_modules", "turbo", "bin", "turbo");
  const [packages, addon] = await Promise.all([
    capture(node, [turbo, "run", "build", "--output-logs=errors-only"], options),
    capture(node, ["scripts/build-addon.mjs"], options),
  ]);
  if (packages.code !== 0) throw new Error(`the build failed:\n${packages.output.trimEnd()}`);
  if (addon.code !== 0) throw new Error(`the addon's build failed:\n${addon.output.trimEnd()}`);
  if (addon.output !== "") process.stderr.write(addon.output);
}
