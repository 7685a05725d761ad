import type { Command } from "commander";
import { EXIT, type ExitCode } from "./exit.ts";
import { badUsage } from "./exit-code.ts";
import { readInput } from "./read-fleet.ts";
import { showSolution } from "./solution-text.ts";

interface SolveFlags {
  solver: string;
  warm?: string;
  deadlineMs?: string;
  json?: true;
  verify?: true;
}

const SOLVERS = ["auto", "native", "ts", "lp"] as const;

export function addSolve(program: Command, end: (code: ExitCode) => void): void {
  program
    .command("solve")
    .description("solve a problem file: weights, shed, prices, and a bound that proves them")
    .argument("<problem>", "problem file (docs/problem-file.md)")
    .option("--solver <name>", "auto, native, ts (the network simplex) or lp (a linear programme)", "auto")
    .option("--warm <solution>", "start from an earlier answer of this command (--json)")
    .option("--deadline-ms <ms>", "end with the best there is after this time, exit code 3")
    .option("--verify", "recompute the answer's cost, bound and constraints in code that no solver uses")
    .option("--json", "print JSON: every cell, engine and arc, and what --warm reads")
    .action(async (path: string, flags: SolveFlags) => {
      const { text, code } = await solve(path, flags);
      program.configureOutput().writeOut?.(text);
      end(code);
    });
}

/** Reads, solves and shows; the exit code says how it ended. */
async function solve(path: string, flags: SolveFlags): Promise<{ text: string; code: ExitCode }> {
  const solver = SOLVERS.find((each) => each === flags.solver);
  if (solver === undefined) badUsage("--solver", flags.solver, `must be one of ${SOLVERS.join(", ")}`);
  if (solver === "lp" && flags.warm !== undefined)
    badUsage("--warm", flags.warm, "the linear programme starts from nothing");
  const deadlineMs = flags.deadlineMs === undefined ? undefined : parseMs("--deadline-ms", flags.deadlineMs);
  const optimizer = await import("@guidevane/optimizer");
  const startMs = performance.now();
  const file = optimizer.parseProblemFile(await readInput("problem file", path), path);
  const warm =
    flags.warm === undefined
      ? null
      : optimizer.readWarm(await readInput("solution file", flags.warm), flags.warm, file);
  const readMs = performance.now() - startMs;
  if (solver === "lp" && file.problem.churn !== undefined)
    badUsage(
      "--solver",
      "lp",
      "the linear programme has no price of moving: leave arcs.moveMs out, or take ts or native",
    );

  const solveStartMs = performance.now();
  const { solution, by } = runSolver();
  const solveMs = performance.now() - solveStartMs;
  const { status, message } = solution;
  // The file was checked: what is left is a problem that the solver refuses for its numbers.
  if (status === "invalid" || status === "not-finite")
    return { text: `${path}: ${status}: ${message}\n`, code: EXIT.invalidProblem };
  const answer = optimizer.writeSolutionFile(
    file,
    { ...solution, status },
    { solver: by, solveMs, warm: "warm" in solution ? solution.warm : null },
  );
  const check = flags.verify ? optimizer.verifySolution(file.problem, solution) : null;
  const text = flags.json
    ? `${JSON.stringify(check === null ? { ...answer, readMs } : { ...answer, readMs, verified: check })}\n`
    : showSolution(answer, readMs, check);
  if (check !== null && check.faults.length > 0) return { text, code: EXIT.failed };
  // The linear programme begins no pass that it could not end in time, so it ends early and is no less cut short.
  const cut = deadlineMs !== undefined && (by === "lp" || solveMs >= deadlineMs);
  if (status === "solved") return { text, code: EXIT.done };
  return { text, code: cut ? EXIT.deadline : EXIT.failed };

  function runSolver() {
    if (solver === "lp")
      return { solution: optimizer.solveLp(file.problem, { deadlineMs: deadlineMs ?? null }), by: "lp" as const };
    const simplex = optimizer.createSimplex(solver as Exclude<typeof solver, "lp" | undefined>);
    const solution = simplex.solve(file.problem, {
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
      ...(warm === null ? {} : { warm }),
    });
    return { solution, by: simplex.kind };
  }
}

function parseMs(flag: string, text: string): number {
  const ms = Number(text);
  if (text.trim() === "" || !(ms > 0) || !Number.isFinite(ms)) badUsage(flag, text, "must be milliseconds above 0");
  return ms;
}
