import { Command, CommanderError } from "commander";
import { EXIT, type ExitCode } from "./exit.ts";
import { VERSION } from "./version.ts";

/** Where a command's text goes. */
export interface Output {
  out(text: string): void;
  err(text: string): void;
}

/**
 * Adds a command to the program.
 *
 * @param end takes the exit code of a command that has printed its answer and ends other than with 0
 */
type AddCommand = (program: Command, end: (code: ExitCode) => void) => void;

/** Each is loaded when it is asked for: all of them together load five hundred modules, which takes longer than most take. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  up: async () => (await import("./command-up.ts")).addUp,
  control: async () => (await import("./command-control.ts")).addControl,
  gateway: async () => (await import("./command-gateway.ts")).addGateway,
  emulate: async () => (await import("./command-emulate.ts")).addEmulate,
  drive: async () => (await import("./command-drive.ts")).addDrive,
  fleet: async () => (await import("./command-fleet.ts")).addFleet,
  profile: async () => (await import("./command-profile.ts")).addProfile,
  simulate: async () => (await import("./command-simulate.ts")).addSimulate,
  solve: async () => (await import("./command-solve.ts")).addSolve,
  explain: async () => (await import("./command-explain.ts")).addExplain,
  diff: async () => (await import("./command-diff.ts")).addDiff,
  "what-if": async () => (await import("./command-what-if.ts")).addWhatIf,
  why: async () => (await import("./command-why.ts")).addWhy,
};

/** Names of the commands that a command line needs: all of them, where it asks for help or for none that there is. */
function commandsFor([first]: readonly string[]): readonly string[] {
  if (first === "--version" || first === "-V") return [];
  return first !== undefined && Object.hasOwn(COMMANDS, first) ? [first] : Object.keys(COMMANDS);
}

/** Runs one command line to its end and gives its exit code, one of `EXIT`. Never throws. */
export async function runProgram(args: readonly string[], output: Output = TERMINAL): Promise<number> {
  let code: ExitCode = EXIT.done;
  try {
    const program = createProgram(output);
    for (const name of commandsFor(args)) {
      const add = await COMMANDS[name]!();
      add(program, (other) => {
        code = other;
      });
    }
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // commander has printed what it had to say; help and version end this way too, with 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.badInput;
    const { explainFailure } = await import("./exit-code.ts");
    const failure = explainFailure(error);
    output.err(`guidevane: ${failure.text}\n`);
    return failure.code;
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
    .showHelpAfterError("(guidevane --help lists the commands, guidevane COMMAND --help what one takes)")
    .configureOutput({ writeOut: output.out, writeErr: output.err })
    .exitOverride();
  program.addHelpText(
    "after",
    "\nExit codes: 0 done, 1 failed, 2 bad usage or bad input, 3 deadline, 4 invalid problem.\nEnvironment: LOG_LEVEL (default info), NO_COLOR, GUIDEVANE_ADMIN_TOKEN.",
  );
  return program;
}
