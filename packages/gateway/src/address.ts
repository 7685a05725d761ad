import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { GuidevaneError } from "@guidevane/core";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * `HOST:PORT` (an IPv6 host in brackets; no host = every address) to an address.
 *
 * @throws GuidevaneError `bad_usage`
 */
export function parseAddress(text: string, option: string): Address {
  const parts = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(parts?.[3]);
  if (parts === null || port > 65_535)
    throw new GuidevaneError("bad_usage", `${option}: needs HOST:PORT (got ${JSON.stringify(text)})`);
  return { host: parts[1] ?? parts[2] ?? "", port };
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * Listens, and gives the base URL that leads there. Rejects with what listening fails on.
 *
 * @param shared another thread may listen at the same address (`SO_REUSEPORT`)
 */
export function listen(server: Server, { host, port }: Address, shared = false): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, reusePort: shared, ...(host === "" ? {} : { host }) }, () => {
      server.off("error", reject);
      const at = server.address() as AddressInfo;
      const name = host === "" || host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host;
      resolve(`http://${name.includes(":") && !name.startsWith("[") ? `[${name}]` : name}:${at.port}`);
    });
  });
}

/**
 * Listens alone for a moment, so that an address that is taken is found even where its owner would share it.
 *
 * @returns the port, which is another one where 0 was asked for. Rejects with what listening fails on
 */
export async function claim({ host, port }: Address): Promise<{ readonly port: number }> {
  const server = createServer();
  server.listen({ port, exclusive: true, ...(host === "" ? {} : { host }) });
  await once(server, "listening");
  const claimed = (server.address() as AddressInfo).port;
  server.close();
  await once(server, "close");
  return { port: claimed };
}
