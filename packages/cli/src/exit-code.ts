import { GuidevaneError } from "@guidevane/core";
import { EXIT, type ExitCode } from "./exit.ts";

/** Bad usage: a flag or argument that can't be. @throws always, GuidevaneError `bad_usage` naming it and its value */
export function badUsage(name: string, value: string | undefined, message: string): never {
  throw new GuidevaneError(
    "bad_usage",
    `${name}: ${message}${value === undefined ? "" : ` (got ${JSON.stringify(value)})`}`,
  );
}

/** A command could not do what it was asked for, for a reason that its caller can see: one sentence, exit code 1. */
export class CommandFailure extends Error {
  override readonly name: string = "CommandFailure";
}

/** An error that a command ended with, as its exit code and the text for stderr. */
export function explainFailure(error: unknown): { code: ExitCode; text: string } {
  if (GuidevaneError.is(error)) {
    if (error.code === "bad_problem") return { code: EXIT.invalidProblem, text: error.message };
    return { code: error.code.startsWith("bad_") ? EXIT.badInput : EXIT.failed, text: error.message };
  }
  if (error instanceof CommandFailure) return { code: EXIT.failed, text: error.message };
  if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") {
    const { address, port } = error as { address?: string; port?: number };
    return { code: EXIT.failed, text: `${address ?? ""}:${port ?? ""} is in use by another program` };
  }
  // What the system refused says itself what and where.
  if (error instanceof Error && "syscall" in error && "code" in error)
    return { code: EXIT.failed, text: error.message };
  // Not one of ours: the stack is what a report of it needs.
  return { code: EXIT.failed, text: error instanceof Error ? (error.stack ?? error.message) : String(error) };
}
