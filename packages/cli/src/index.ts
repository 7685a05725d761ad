/** The `guidevane` program. The package is a program first; this is what a test or a script may call. */
export { runProgram } from "./program.ts";
