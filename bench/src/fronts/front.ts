import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Cores, pinned } from "../load/cores.ts";

/** Something that stands between clients and an engine: Guidevane, or a yardstick. */
export interface Front {
  readonly name: string;
  /** Why it can't run here; null when it can. */
  missing(): string | null;
  /** Starts it before the engine at `engine` (`HOST:PORT`); it answers when this resolves. */
  start(engine: string, cores: Cores | null): Promise<RunningFront>;
}

export interface RunningFront {
  /** `HOST:PORT` */
  readonly address: string;
  /** The process whose time and memory count. */
  readonly pid: number;
  /** Processes beside it that take time of the other cores. */
  readonly helpers: readonly number[];
  stop(): Promise<void>;
}

/** Starts a command on some cores; what it prints on standard error is kept for the case that it fails. */
export function startOn(
  cores: readonly number[] | undefined,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  const [program, ...args] = pinned(cores ?? [], command);
  return spawn(program!, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
}

export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** A port that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** Waits until a chat completion comes back whole. @throws Error when the program ends, or within a minute none does */
export async function answers(address: string, child: ChildProcess): Promise<void> {
  let last = "";
  child.stderr?.on("data", (text) => {
    last = `${last}${text}`.slice(-LAST_BYTES);
  });
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "ready?" }] });
  const endMs = performance.now() + START_WITHIN_MS;
  while (performance.now() < endMs) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${last.trim()}`);
    try {
      const answer = await fetch(`http://${address}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      await answer.text();
      if (answer.status === 200) return;
    } catch {
      // Not listening yet.
    }
    await sleep(POLL_MS);
  }
  throw new Error(`it did not answer within ${START_WITHIN_MS / 1000} s: ${last.trim()}`);
}

const START_WITHIN_MS = 60_000;
const POLL_MS = 50;
const LAST_BYTES = 2000;

/** Whether a program is there, by asking it for its version. */
export function isThere(program: string, args: readonly string[] = ["--version"]): boolean {
  return spawnSync(program, [...args], { stdio: "ignore", timeout: START_WITHIN_MS }).error === undefined;
}
