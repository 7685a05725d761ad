import { badUsage } from "./exit-code.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** `HOST:PORT` (`[::1]:80` for IPv6). @throws GuidevaneError `bad_usage` */
export function parseAddress(flag: string, text: string): Address {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):(\d{1,5})$/.exec(text);
  if (match === null) badUsage(flag, text, "must be HOST:PORT");
  return { host: match[1]!.replace(/^\[|\]$/g, ""), port: parsePort(flag, match[2]!) };
}

/** 0 to 65535; 0 = a free one. @throws GuidevaneError `bad_usage` */
export function parsePort(flag: string, text: string): number {
  const port = parseCount(flag, text);
  return port <= 65_535 ? port : badUsage(flag, text, "must be a port, 0 to 65535");
}

/** A whole number of 0 or more. @throws GuidevaneError `bad_usage` */
export function parseCount(flag: string, text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : badUsage(flag, text, "must be a whole number of 0 or more");
}

/** How many threads serve requests. @throws GuidevaneError `bad_usage` */
export function parseThreads(flag: string, text: string): number {
  const threads = parseCount(flag, text);
  return threads >= 1 && threads <= THREADS_MAX ? threads : badUsage(flag, text, `must be 1 to ${THREADS_MAX}`);
}

/** More than a machine has cores only costs memory. */
const THREADS_MAX = 256;

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * The bearer token of an admin address: what the environment says, needed where others than this machine can connect.
 *
 * @throws GuidevaneError `bad_usage`
 */
export function adminToken(flag: string, address: Address, env: NodeJS.ProcessEnv): string | null {
  const token = env.GUIDEVANE_ADMIN_TOKEN;
  if (token !== undefined && token !== "") return token;
  if (isLoopback(address.host)) return null;
  return badUsage(flag, address.host, "an admin address that is not loopback needs GUIDEVANE_ADMIN_TOKEN");
}
