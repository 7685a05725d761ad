#!/usr/bin/env node
import { runProgram } from "./program.ts";

// Who read this has gone, as `head` does: a command that serves ends in good order, any other at once.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  if (!process.emit("SIGTERM", "SIGTERM")) process.exit();
});

process.exitCode = await runProgram(process.argv.slice(2));
