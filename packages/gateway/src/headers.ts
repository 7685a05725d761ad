/** Which headers pass between client and engine, and which are the gateway's. Names keep their case and order. */

/** Of one connection, never of the message (RFC 9110 §7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Not the engine's business, or set anew. */
const NOT_TO_ENGINE: ReadonlySet<string> = new Set([
  "host",
  "expect",
  "content-length",
  "forwarded",
  "x-real-ip",
  "cookie",
  "x-request-id",
]);

/** Where clients put their credentials. */
export const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  "authorization",
  "api-key",
  "x-api-key",
  "x-goog-api-key",
]);
const CREDENTIAL_QUERY: ReadonlySet<string> = new Set(["key", "api_key"]);

/** The gateway's own to say, or (`alt-svc`) another address to go to. */
const NOT_TO_CLIENT: ReadonlySet<string> = new Set(["x-request-id", "alt-svc"]);

/** A place of the same server. Anything else names the engine, or sends the client around the gateway. */
const OWN_PLACE = /^\/(?!\/)/;

export interface ToEngine {
  /** The engine takes the client's own credentials. */
  readonly passthrough: boolean;
  /** Lower-case names that stay here all the same. */
  readonly withheld: readonly string[];
  /** Names and values in turn, put last. */
  readonly added: readonly string[];
}

/** Headers for the engine from the client's raw ones (names and values in turn). */
export function headersToEngine(raw: readonly string[], { passthrough, withheld, added }: ToEngine): string[] {
  const connection = connectionNames(raw);
  const out: string[] = [];
  const stays = passthrough ? KIND.engineNever : KIND.engineNever | KIND.credential;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!;
    if ((kindOf(name) & stays) !== 0) continue;
    if ((connection !== null || withheld.length > 0) && isOneOf(name, connection, withheld)) continue;
    out.push(name, raw[i + 1]!);
  }
  for (const each of added) out.push(each);
  return out;
}

/**
 * Headers for the client from the engine's raw ones, with the gateway's own put last. Where those say what browsers may
 * do, the engine's word on that does not count: two of them make a browser refuse the answer.
 *
 * @param status 204 has no length (RFC 9110 §8.6), and a client that believed one would wait for the next answer's bytes
 */
export function headersToClient(raw: readonly string[], added: readonly string[], status: number): string[] {
  const ownCors = added.includes("access-control-allow-origin") || added.includes("vary");
  const connection = connectionNames(raw);
  const out: string[] = [];
  const stays = KIND.clientNever | (ownCors ? KIND.cors : 0) | (status === 204 ? KIND.length : 0);
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!;
    const kind = kindOf(name);
    if ((kind & stays) !== 0 || (connection !== null && isOneOf(name, connection, NONE))) continue;
    if ((kind & KIND.place) !== 0 && !OWN_PLACE.test(raw[i + 1]!)) continue;
    out.push(name, raw[i + 1]!);
  }
  for (const each of added) out.push(each);
  return out;
}

const NONE: readonly string[] = [];

function isOneOf(name: string, connection: ReadonlySet<string> | null, withheld: readonly string[]): boolean {
  const lower = name.toLowerCase();
  return connection?.has(lower) === true || withheld.includes(lower);
}

/** What a header is, by its name: bits. */
const KIND = { engineNever: 1, clientNever: 2, credential: 4, cors: 8, length: 16, place: 32 } as const;

/** Of names as they are written. Bounded, for a client may send any. */
const kinds = new Map<string, number>();
const KINDS_MAX = 4096;
const KINDS_NAME_MAX = 64;

function kindOf(name: string): number {
  const known = kinds.get(name);
  if (known !== undefined) return known;
  const kind = kindOfLower(name.toLowerCase());
  if (kinds.size >= KINDS_MAX) kinds.clear();
  // A piece of a head as a key would keep the whole of it.
  if (name.length <= KINDS_NAME_MAX) kinds.set(Buffer.from(name, "latin1").toString("latin1"), kind);
  return kind;
}

function kindOfLower(name: string): number {
  const own = name.startsWith("proxy-") || name.startsWith("x-guidevane-") || HOP_BY_HOP.has(name);
  const notToEngine = own || NOT_TO_ENGINE.has(name) || name.startsWith("x-forwarded-");
  return (
    (notToEngine ? KIND.engineNever : 0) |
    (own || NOT_TO_CLIENT.has(name) ? KIND.clientNever : 0) |
    (CREDENTIAL_HEADERS.has(name) ? KIND.credential : 0) |
    (name.startsWith("access-control-") ? KIND.cors : 0) |
    (name === "content-length" ? KIND.length : 0) |
    (name === "location" ? KIND.place : 0)
  );
}

/**
 * The query for the engine, `?` included; empty where nothing is left.
 *
 * @param passes whether credentials do
 */
export function queryToEngine(query: string, passes: boolean): string {
  if (query === "" || passes) return query;
  const parts = query
    .slice(1)
    .split("&")
    .filter((part) => !CREDENTIAL_QUERY.has(decodeName(part.split("=", 1)[0]!)));
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** Credentials in a query, `?` included. */
export function queryCredentials(query: string): string[] {
  return query
    .slice(1)
    .split("&")
    .map((part) => part.split("=", 2))
    .filter(([name = ""]) => CREDENTIAL_QUERY.has(decodeName(name)))
    .map(([, value = ""]) => decodeText(value));
}

/** First value of a header in raw names and values; undefined where it is not there. */
export function headerOf(raw: readonly string[], name: string): string | undefined {
  for (let i = 0; i + 1 < raw.length; i += 2)
    if (raw[i]!.length === name.length && raw[i]!.toLowerCase() === name) return raw[i + 1];
  return undefined;
}

const CONNECTION = "connection";

function connectionNames(raw: readonly string[]): Set<string> | null {
  let names: Set<string> | null = null;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]!.length !== CONNECTION.length || raw[i]!.toLowerCase() !== CONNECTION) continue;
    for (const each of raw[i + 1]!.split(",")) {
      const name = each.trim().toLowerCase();
      if (name === "" || name === "keep-alive" || name === "close") continue;
      names ??= new Set();
      names.add(name);
    }
  }
  return names;
}

/** A credential's name written with escapes is the same name to the engine. */
function decodeName(name: string): string {
  return decodeText(name).toLowerCase();
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}
