import { readFileSync } from "node:fs";
import type { EngineSpec, Fleet } from "@guidevane/core";

/** How requests to one engine are authorised. */
export interface EngineCredentials {
  /** The client's own credentials go on to the engine. */
  readonly passthrough: boolean;
  /** Names and values in turn, put on every request. */
  readonly headers: readonly string[];
  readonly tls: EngineTlsSecrets | null;
}

/** How an https engine is spoken to where it is not as everywhere; PEM texts. */
export interface EngineTlsSecrets {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  /** The name that its certificate must have; null = its host's. */
  readonly serverName: string | null;
}

export const NO_CREDENTIALS: EngineCredentials = { passthrough: false, headers: [], tls: null };

/** Where secrets are read from; a test puts its own in. */
export interface SecretSource {
  env(name: string): string | undefined;
  /** @throws what reading the file throws */
  file(path: string): string;
}

export const processSecrets: SecretSource = {
  env: (name) => process.env[name],
  file: (path) => readFileSync(path, "utf8"),
};

/**
 * Credentials of every engine of the gateway's own fleet file; they never travel in a snapshot, and an engine that the
 * file doesn't have gets none.
 *
 * @returns credentials by engine; those that it doesn't have get none
 * @param onMissing is told of each engine whose secret can't be had; that engine gets none
 */
export function loadCredentials(
  fleet: Pick<Fleet, "engines">,
  secrets: SecretSource,
  onMissing: (engine: string, why: string) => void,
): ReadonlyMap<string, EngineCredentials> {
  const byEngine = new Map<string, EngineCredentials>();
  for (const engine of fleet.engines.values()) {
    const credentials = credentialsOf(engine, secrets, onMissing);
    const tls = tlsOf(engine, secrets, onMissing);
    if (credentials !== NO_CREDENTIALS || tls !== null) byEngine.set(engine.id, { ...credentials, tls });
  }
  return byEngine;
}

function credentialsOf(
  { id, auth }: EngineSpec,
  secrets: SecretSource,
  onMissing: (engine: string, why: string) => void,
): EngineCredentials {
  if (auth.passthrough === true) return { ...NO_CREDENTIALS, passthrough: true };
  if (auth.keyEnv === undefined && auth.keyFile === undefined) return NO_CREDENTIALS;
  let key: string | undefined;
  let why = "is empty";
  try {
    key = auth.keyEnv === undefined ? secrets.file(auth.keyFile!) : secrets.env(auth.keyEnv);
    if (key === undefined) why = "is not set";
  } catch (error) {
    why = error instanceof Error ? error.message : String(error);
  }
  // Editors end files with a newline, which is no part of the key. A line end within it would begin another header.
  const trimmed = key?.trim() ?? "";
  if (trimmed !== "" && !PRINTABLE.test(trimmed)) why = "has characters that no header may have";
  if (!PRINTABLE.test(trimmed)) {
    onMissing(id, `${auth.keyEnv === undefined ? `keyFile ${auth.keyFile}` : `keyEnv ${auth.keyEnv}`} ${why}`);
    return NO_CREDENTIALS;
  }
  return { ...NO_CREDENTIALS, headers: ["authorization", `Bearer ${trimmed}`] };
}

const PRINTABLE = /^[\x20-\x7e]+$/;

/** Null where the fleet file says nothing of it. A file that can't be read is told of, and the engine will not be trusted. */
function tlsOf(
  { id, tls }: EngineSpec,
  secrets: SecretSource,
  onMissing: (engine: string, why: string) => void,
): EngineTlsSecrets | null {
  const { caFile, certFile, keyFile, serverName } = tls;
  if ((caFile ?? certFile ?? keyFile ?? serverName) === undefined) return null;
  const read = (key: string, path: string | undefined): string | null => {
    if (path === undefined) return null;
    try {
      return secrets.file(path);
    } catch (error) {
      onMissing(id, `tls.${key} ${path} ${error instanceof Error ? error.message : String(error)}`);
      return null;
    }
  };
  return {
    ca: read("caFile", caFile),
    cert: read("certFile", certFile),
    key: read("keyFile", keyFile),
    serverName: serverName ?? null,
  };
}
