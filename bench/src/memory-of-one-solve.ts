import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serialize } from "node:v8";
import type { Problem } from "@guidevane/optimizer";

/** Bytes by which one solve raises the peak of a process that has only read the problem: `solver-memory.ts`. */
export function memoryOfOneSolve(problem: Problem, kind: "ts" | "native"): number {
  const folder = mkdtempSync(join(tmpdir(), "guidevane-bench-"));
  try {
    const path = join(folder, "problem");
    writeFileSync(path, serialize(problem));
    const script = fileURLToPath(new URL("./solver-memory.ts", import.meta.url));
    const printed = execFileSync(process.execPath, ["--conditions=@guidevane/source", script, path, kind], {
      encoding: "utf8",
    });
    return Number(printed);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
