#!/usr/bin/env node

// Who read this has gone, as `head` does: a command that serves ends in good order, any other at once.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  if (!process.emit("SIGTERM", "SIGTERM")) process.exit();
});

/** The first Node with everything that the HTTP client needs. */
const LEAST = [22, 19] as const;
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

if (major < LEAST[0] || (major === LEAST[0] && minor < LEAST[1])) {
  // Before anything else is loaded: on an older Node the packages fail while loading, each with a trace of its own.
  process.stderr.write(
    `guidevane: needs Node ${LEAST.join(".")} or newer, this is ${process.versions.node}; in a clone, \`npx guidevane\` has the right one\n`,
  );
  process.exitCode = 2;
} else {
  const { runProgram } = await import("./program.ts");
  process.exitCode = await runProgram(process.argv.slice(2));
}
