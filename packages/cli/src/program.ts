import { Command, CommanderError } from "commander";
import { addControl } from "./command-control.ts";
import { addDiff } from "./command-diff.ts";
import { addDrive } from "./command-drive.ts";
import { addEmulate } from "./command-emulate.ts";
import { addExplain } from "./command-explain.ts";
import { addFleet } from "./command-fleet.ts";
import { addGateway } from "./command-gateway.ts";
import { addProfile } from "./command-profile.ts";
import { addSimulate } from "./command-simulate.ts";
import { addSolve } from "./command-solve.ts";
import { addUp } from "./command-up.ts";
import { addWhatIf } from "./command-what-if.ts";
import { addWhy } from "./command-why.ts";
import { EXIT, type ExitCode, explainFailure } from "./exit-code.ts";
import { VERSION } from "./version.ts";

/** Where a command's text goes. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
}

/** Runs one command line to its end and gives its exit code, one of `EXIT`. Never throws. */
export async function runProgram(args: readonly string[], output: Output = TERMINAL): Promise<number> {
  let code: ExitCode = EXIT.done;
  const program = createProgram(output, (other) => {
    code = other;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // commander has printed what it had to say; help and version end this way too, with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.badInput;
    const failure = explainFailure(error);
    output.err(`guidevane: ${failure.text}\n`);
    return failure.code;
  }
}

const TERMINAL: Output = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

/** @param end takes the exit code of a command that has printed its answer and ends other than with 0 */
function createProgram(output: Output, end: (code: ExitCode) => void): Command {
  const program = new Command("guidevane")
    .description("An inference load balancer that solves for its weights, proves them and explains them")
    .version(VERSION)
    .showHelpAfterError("(guidevane --help lists the commands)")
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .exitOverride();
  addUp(program);
  addControl(program);
  addGateway(program);
  addEmulate(program);
  addDrive(program);
  addFleet(program);
  addProfile(program);
  addSimulate(program);
  addSolve(program, end);
  addExplain(program);
  addDiff(program);
  addWhatIf(program);
  addWhy(program);
  program.addHelpText(
    "after",
    "\nExit codes: 0 done, 1 failed, 2 bad usage or bad input, 3 deadline, 4 invalid problem.\nEnvironment: LOG_LEVEL (default info), NO_COLOR, GUIDEVANE_ADMIN_TOKEN.",
  );
  return program;
}
