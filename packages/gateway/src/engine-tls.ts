import { isIP } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { EngineTlsSecrets } from "./credentials.ts";

/** How a TLS connection to an engine at `host` is opened. @param tls null = as everywhere, by the system's trust */
export function tlsOptions(host: string, tls: EngineTlsSecrets | null): ConnectionOptions {
  const serverName = tls?.serverName ?? (isIP(host) === 0 ? host : null);
  return {
    ALPNProtocols: ["http/1.1"],
    ...(serverName === null ? {} : { servername: serverName }),
    ...(tls === null || tls.ca === null ? {} : { ca: tls.ca }),
    ...(tls === null || tls.cert === null || tls.key === null ? {} : { cert: tls.cert, key: tls.key }),
  };
}
