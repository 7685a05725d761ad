import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./repository.ts";

/** Commands of the README's shell blocks, one a line: without prompts, comments and continuation. */
export function readmeCommands(): string[] {
  return shellCommands(readFileSync(join(root, "README.md"), "utf8"));
}

export function shellCommands(page: string): string[] {
  return [...page.matchAll(/^```(?:sh|bash|shell|console)\n([\s\S]*?)^```/gm)].flatMap(([, block = ""]) =>
    block
      .replace(/\\\n\s*/g, "")
      .split("\n")
      .map((line) =>
        line
          .replace(/^\$ /, "")
          .replace(/\s+# .*$/, "")
          .trim(),
      )
      .filter((line) => line !== "" && !line.startsWith("#")),
  );
}
