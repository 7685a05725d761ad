import { createHash, randomBytes } from "node:crypto";
import { GuidevaneError } from "@guidevane/core";
import type { ApiError } from "./api-error.ts";
import type { SecretSource } from "./credentials.ts";
import { CREDENTIAL_HEADERS, queryCredentials } from "./headers.ts";

/** Where the keys stand: `gateway.clientKeys`. */
export interface ClientKeySource {
  readonly env?: string | undefined;
  readonly file?: string | undefined;
}

export interface ClientKey {
  readonly key: string;
  /** Whose it is. */
  readonly tenant: string;
}

/** Whose request it is, by the key that it brought. */
export interface Client {
  readonly tenant: string;
  /** Lower-case names of the headers that hold a key of ours: they are for nobody else. */
  readonly keyHeaders: readonly string[];
  /** The query holds one too. */
  readonly keyInQuery: boolean;
}

/**
 * Reads the keys that clients must bring: one a line, as `KEY` or `KEY TENANT`; empty lines and lines that begin with `#`
 * are none. Keys with the same tenant are one client's, so that a key can be replaced without losing what its
 * conversations have cached; without a name the tenant is made from the key by a one-way function.
 *
 * @returns null where clients need no key
 * @throws GuidevaneError `bad_fleet` when the source can't be read or holds no key: an empty one must not let everybody in
 */
export function loadClientKeys(
  source: ClientKeySource | undefined,
  secrets: SecretSource,
): readonly ClientKey[] | null {
  if (source === undefined) return null;
  const at = source.env === undefined ? `clientKeys.file ${source.file}` : `clientKeys.env ${source.env}`;
  let text: string | undefined;
  try {
    text = source.env === undefined ? secrets.file(source.file!) : secrets.env(source.env);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new GuidevaneError("bad_fleet", `gateway.${at}: can't be read: ${why}`, { cause: error });
  }
  if (text === undefined) throw new GuidevaneError("bad_fleet", `gateway.${at}: is not set`);
  const keys = new Map<string, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const [key = "", tenant = tenantOfKey(key), ...more] = line.trim().split(/\s+/);
    if (key === "" || key.startsWith("#")) continue;
    // The line itself may hold a key, and messages end in logs.
    const bad = more.length > 0 ? "has more than a key and a tenant" : keys.has(key) ? "repeats a key" : null;
    if (bad !== null) throw new GuidevaneError("bad_fleet", `gateway.${at}: line ${index + 1} ${bad}`);
    keys.set(key, tenant);
  }
  if (keys.size === 0) throw new GuidevaneError("bad_fleet", `gateway.${at}: holds no key`);
  return [...keys].map(([key, tenant]) => ({ key, tenant }));
}

function tenantOfKey(key: string): string {
  return `key-${createHash("sha256").update(key).digest("hex").slice(0, TENANT_DIGITS)}`;
}

const TENANT_DIGITS = 12;

/** The keys that clients may bring. Holds none of them, only their digests. */
export class ClientKeys {
  /** Tenants by digest. */
  readonly #tenants = new Map<string, string>();
  // Without knowing it nobody can choose keys whose digests begin alike, so the time of a look-up tells nothing.
  readonly #salt = randomBytes(32);

  constructor(keys: readonly ClientKey[]) {
    for (const { key, tenant } of keys) this.#tenants.set(this.#digest(key), tenant);
  }

  /**
   * The client that a request's headers name; a key in the query alone is none, since queries end in logs. A header of
   * credentials that stands twice names nobody: of two servers each may believe another one.
   *
   * @param raw names and values in turn
   * @param query with its `?`
   */
  clientOf(raw: readonly string[], query: string): Client | ApiError {
    let tenant: string | null = null;
    const keyHeaders: string[] = [];
    const seen = new Set<string>();
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const name = raw[i]!.toLowerCase();
      if (!CREDENTIAL_HEADERS.has(name)) continue;
      if (seen.has(name)) return refusal(`there are two ${name} headers`);
      seen.add(name);
      const found = this.tenantOf(name === "authorization" ? bearerOf(raw[i + 1]!) : raw[i + 1]!.trim());
      if (found === null) continue;
      tenant ??= found;
      keyHeaders.push(name);
    }
    if (tenant === null)
      return refusal(
        seen.size === 0 ? "an API key is required: Authorization: Bearer KEY" : "the API key is not known",
      );
    return { tenant, keyHeaders, keyInQuery: queryCredentials(query).some((key) => this.tenantOf(key) !== null) };
  }

  /** Null where it is no key. */
  tenantOf(key: string): string | null {
    return key === "" ? null : (this.#tenants.get(this.#digest(key)) ?? null);
  }

  #digest(key: string): string {
    return createHash("sha256").update(this.#salt).update(key, "utf8").digest("base64");
  }
}

/** The token of `Bearer TOKEN`; of another scheme nothing. */
function bearerOf(value: string): string {
  return /^bearer[ \t]+(\S+)[ \t]*$/i.exec(value)?.[1] ?? "";
}

function refusal(message: string): ApiError {
  return {
    status: 401,
    code: "invalid_api_key",
    message,
    headers: { "www-authenticate": "Bearer" },
    close: true,
  };
}
