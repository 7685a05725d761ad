import { spawn } from "node:child_process";

/** Signals that a terminal or a supervisor sends to end a program. */
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Starts a program that has this one's terminal, and waits for its end. It stays in this process group, so that killing
 * the group leaves nothing behind. Signals are handed on: a terminal's Ctrl-C has reached the program by itself already,
 * but one sent to this process alone has not, and a program that is ending takes the second for the first.
 *
 * @returns Promise of `{ code, signal }`, one of them null
 */
export function start(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: "inherit" });
    const handlers = ENDING.map((signal) => {
      const handler = () => child.kill(signal);
      process.on(signal, handler);
      return () => process.off(signal, handler);
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      for (const remove of handlers) remove();
      resolve({ code, signal });
    });
  });
}

/** Runs a program to its end and keeps what it prints. */
export function capture(command, args, options) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (text) => {
        output += text;
      });
    }
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? 1, output }));
  });
}
