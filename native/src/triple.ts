import { closeSync, openSync, readSync } from "node:fs";

/** Platform, processor and C library as napi-rs names them, `linux-x64-gnu`: the middle of an addon's file name. */
export function hostTriple(host: Host = thisHost): string {
  const { platform, arch } = host;
  if (platform === "linux") return `linux-${arch}-${host.isMusl() ? "musl" : "gnu"}${arch === "arm" ? "eabihf" : ""}`;
  if (platform === "win32") return `win32-${arch}-msvc`;
  return `${platform}-${arch}`;
}

export interface Host {
  readonly platform: string;
  readonly arch: string;
  /** Asked on Linux only. */
  isMusl(): boolean;
}

const thisHost: Host = { platform: process.platform, arch: process.arch, isMusl: runningOnMusl };

/** A dynamically linked program names its loader in its first page. */
const HEADER_BYTES = 4096;

/**
 * Whether this very Node is linked with musl: the loader it names says so. What is installed on the machine does not,
 * since a glibc machine may have musl too, and asking `ldd` would cost a child process.
 */
function runningOnMusl(): boolean {
  const header = Buffer.alloc(HEADER_BYTES);
  try {
    const file = openSync(process.execPath, "r");
    try {
      readSync(file, header, 0, HEADER_BYTES, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    // A Node that can't read itself gets the common answer; a wrong one fails to load, with its reason, and no more.
    return false;
  }
  return header.includes("/ld-musl-");
}
