import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pinned } from "./cores.ts";

/** The generator and the stub engine of `bench/load`: neither is Node, and neither tires before what stands between them. */

const crate = fileURLToPath(new URL("../../load/", import.meta.url));
const program = `${crate}target/release/guidevane-load`;

/** What the generator says of one window; times in nanoseconds. */
export interface DriveReport {
  readonly elapsedNs: number;
  /** Answers that ended in the window. */
  readonly requests: number;
  readonly errors: number;
  /** The first of them, in words. */
  readonly error: string | null;
  /** Events that arrived in the window. */
  readonly events: number;
  /** Connections opened in the window. */
  readonly opened: number;
  /** Answers under way at its end. */
  readonly open: number;
  readonly firstByteNs: Quantiles | null;
  /** From an event's being sent by the stub to its being read. */
  readonly eventNs: Quantiles | null;
  /** How late the generator itself was, in an open loop. */
  readonly lateNs: Quantiles | null;
  /** In the order of `watch`. */
  readonly processes: readonly ProcessUse[];
  readonly ownCpuNs: number;
  readonly coresBusyNs: readonly number[];
}

export interface Quantiles {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface ProcessUse {
  readonly pid: number;
  readonly cpuNs: number;
  /** Anonymous memory before the first connection, and at the window's end. */
  readonly idleBytes: number;
  readonly endBytes: number;
}

export interface DriveOptions {
  /** `HOST:PORT` */
  readonly to: string;
  readonly connections: number;
  /** Open loop: requests a second. Left out: a closed loop. */
  readonly rate?: number;
  readonly bodyBytes?: number;
  readonly stream?: { readonly everyMs: number; readonly events: number };
  /** Connections opened a second. */
  readonly ramp?: number;
  readonly warmMs: number;
  readonly windowMs: number;
  /** Processes whose use is reported. */
  readonly watch: readonly number[];
}

/** Compiles both where that is needed; why that can't be done, or null. */
export function buildGenerator(): string | null {
  if (process.platform !== "linux") return `the load generator needs Linux, this is ${process.platform}`;
  try {
    execFileSync("cargo", ["build", "--release", "--locked", "--quiet", "--manifest-path", `${crate}Cargo.toml`], {
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
    });
    return null;
  } catch (error) {
    if (existsSync(program)) return null;
    const { code, stderr } = error as { code?: string; stderr?: string };
    return `the load generator: ${code === "ENOENT" ? "cargo is not here" : (stderr ?? String(error)).trim()}`;
  }
}

export interface Stub {
  /** `HOST:PORT` */
  readonly address: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export async function startStub(cores: readonly number[]): Promise<Stub> {
  const [command, ...args] = pinned(cores, [program, "stub"]);
  const child = spawn(command!, args, { stdio: ["pipe", "pipe", "inherit"] });
  return {
    address: await firstLine(child),
    pid: child.pid!,
    async stop() {
      const exited = once(child, "exit");
      child.stdin.end();
      await exited;
    },
  };
}

/** Runs the generator. @throws Error with its last words when it fails */
export async function drive(options: DriveOptions, cores: readonly number[]): Promise<DriveReport> {
  const { to, connections, rate, bodyBytes, stream, ramp, warmMs, windowMs, watch } = options;
  const args = ["drive", "--to", to, "--connections", connections, "--warm-ms", warmMs, "--window-ms", windowMs];
  if (rate !== undefined) args.push("--rate", rate);
  if (bodyBytes !== undefined) args.push("--body", bodyBytes);
  if (stream !== undefined) args.push("--stream", `${stream.everyMs}x${stream.events}`);
  if (ramp !== undefined) args.push("--ramp", ramp);
  if (watch.length > 0) args.push("--watch", watch.join(","));
  const [command, ...rest] = pinned(cores, [program, ...args.map(String)]);
  const child = spawn(command!, rest, { stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let err = "";
  child.stdout.on("data", (text) => {
    out += text;
  });
  child.stderr.on("data", (text) => {
    err += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(err.trim() || `the load generator ended with ${code}`);
  return JSON.parse(out) as DriveReport;
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout! })) return line;
  throw new Error("the stub engine ended before it listened");
}
