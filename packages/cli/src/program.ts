import { Command, CommanderError } from "commander";
import { addControl } from "./command-control.ts";
import { addDrive } from "./command-drive.ts";
import { addEmulate } from "./command-emulate.ts";
import { addFleet } from "./command-fleet.ts";
import { addGateway } from "./command-gateway.ts";
import { addUp } from "./command-up.ts";
import { EXIT, explainFailure } from "./exit-code.ts";
import { VERSION } from "./version.ts";

/** Where a command's text goes. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
}

/** Runs one command line to its end and gives its exit code: 0 done, 1 failed, 2 bad usage or bad input. Never throws. */
export async function runProgram(args: readonly string[], output: Output = TERMINAL): Promise<number> {
  const program = createProgram(output);
  try {
    await program.parseAsync(args, { from: "user" });
    return Number(process.exitCode ?? EXIT.done);
  } catch (error) {
    // commander has printed what it had to say; help and version end this way too, with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.badInput;
    const { code, text } = explainFailure(error);
    output.err(`guidevane: ${text}\n`);
    return code;
  }
}

const TERMINAL: Output = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

function createProgram(output: Output): Command {
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
  program.addHelpText(
    "after",
    "\nExit codes: 0 done, 1 failed, 2 bad usage or bad input.\nEnvironment: LOG_LEVEL (default info), NO_COLOR, GUIDEVANE_ADMIN_TOKEN.",
  );
  return program;
}
