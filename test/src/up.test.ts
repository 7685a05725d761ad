import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readmeCommands } from "./readme.ts";
import { root } from "./repository.ts";

/** `npm start` as a newcomer has it: the script, the built program, all of its children, a terminal's Ctrl-C. */

const run = promisify(execFile);

describe.skipIf(process.platform === "win32")("npm start (not on Windows: it has no process groups)", () => {
  let child: ChildProcess;
  let output = "";
  const changed = new Set<() => void>();

  let first = 0;

  beforeAll(async () => {
    first = await freePort();
    child = spawn("npm", ["start", "--", "--port", String(first)], {
      cwd: root,
      // A group of its own, as a shell gives to what it runs in a terminal.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
        for (const tell of changed) tell();
      });
    }
    child.once("exit", () => {
      for (const tell of changed) tell();
    });
    await until(() => /^Ctrl-C ends it/m.test(output));
  }, 180_000);

  afterAll(async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, "SIGKILL");
  });

  it("prints where each cluster's traffic goes, the optimum beside nearest-only, and a line to try", () => {
    expect(output).toMatch(/Where each cluster's traffic goes/);
    for (const word of ["engine-a", "engine-b", "engine-c", "nearest", "certificate", "router"]) {
      expect(output).toContain(word);
    }
  });

  it("prints a curl line that gets an answer", async () => {
    const line = /^ +(curl .+)$/m.exec(output)?.[1];
    const { stdout } = await run("sh", ["-c", insisting(line ?? "false")]);
    expect(stdout).toMatch(/"choices"|^data: /m);
  }, 120_000);

  it("gets an answer to every curl line of the README, whose ports count from 8080", async () => {
    const lines = readmeCommands().filter((command) => command.startsWith("curl "));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const moved = line.replace(/(?<=127\.0\.0\.1:|localhost:)\d+/g, (port) => String(Number(port) - 8080 + first));
      expect(moved).not.toBe(line);
      const { stdout } = await run("sh", ["-c", insisting(moved)]);
      expect(stdout).not.toBe("");
    }
  }, 120_000);

  it("ends on Ctrl-C within five seconds and leaves no process", async () => {
    const exited = once(child, "exit");
    const startMs = performance.now();
    process.kill(-child.pid!, "SIGINT");
    await exited;
    expect(performance.now() - startMs).toBeLessThan(5000);
    expect(await groupMembers(child.pid!)).toEqual([]);
  });

  /** Waits until it is so. @throws Error with what was printed when the program ends before */
  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`npm start ended:\n${output}`);
      await new Promise<void>((resolve) => {
        changed.add(resolve);
      });
    }
    changed.clear();
  }
});

/** Processes of a group, as `ps` shows them. */
async function groupMembers(group: number): Promise<string[]> {
  const { stdout } = await run("ps", ["-eo", "pgid=,stat=,args="]);
  return stdout
    .split("\n")
    .filter((line) => Number(/^\s*(\d+)/.exec(line)?.[1]) === group && !/^\s*\d+\s+Z/.test(line));
}

/**
 * A port with all that `up` counts from it free. Below 32,768, where Linux begins to give ports to outgoing
 * connections: one of those could take a port between this look and its use.
 */
async function freePort(): Promise<number> {
  for (let turn = 0; turn < PLACES; turn++) {
    const port = FIRST_PORT + ((process.pid + turn) % PLACES) * PORTS_NEEDED;
    const free = await Promise.all([0, 1, 2, 90, 100, 101, 102, 200, 201, 202].map((offset) => isFree(port + offset)));
    if (free.every((each) => each)) return port;
  }
  throw new Error("no place for the ports of a fleet");
}

const FIRST_PORT = 12_000;
const PORTS_NEEDED = 210;
const PLACES = 90;

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** At 90 % load chance fills the engines now and then, and a refusal says when to come again. */
function insisting(line: string): string {
  return line.replace(/^curl /, "curl --fail --retry 5 --silent --show-error ");
}
