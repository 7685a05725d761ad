import { HEAD, HEAD_BYTES, HEAD_WORDS, type HeadFacts, TRIED_MAX } from "@guidevane/selector";

/** What a request's head says to the selector. Kept by the request, for the facts' memory is shared by all of them. */
export interface RequestHead {
  readonly pathId: number;
  /** null = no (trusted) header names one. */
  readonly className: string | null;
  readonly residency: string | null;
  readonly tenant: Buffer | null;
  readonly sessionKey: Buffer | null;
}

export interface HeadRules {
  /** In order of precedence. */
  readonly sessionHeaders: readonly string[];
  /** Whether `x-guidevane-class`, `-residency` and `-tenant` are believed. */
  readonly trustHeaders: boolean;
}

/**
 * Reads the headers that route. A header that is repeated counts as its joined text; one without text is not there.
 *
 * @param keyTenant whose key the client brought; a tenant that a trusted header names comes before it
 */
export function readHead(
  raw: readonly string[],
  pathId: number,
  rules: HeadRules,
  keyTenant: string | null = null,
): RequestHead {
  const trusted = (name: string): string | null => (rules.trustHeaders ? joined(raw, name) : null);
  let session: string | null = null;
  for (const name of rules.sessionHeaders) {
    session = joined(raw, name.toLowerCase());
    if (session !== null) break;
  }
  const tenant = trusted("x-guidevane-tenant") ?? keyTenant;
  return {
    pathId,
    className: trusted("x-guidevane-class"),
    residency: trusted("x-guidevane-residency"),
    tenant: tenant === null ? null : Buffer.from(tenant),
    sessionKey: session === null ? null : Buffer.from(session, "latin1").subarray(0, HEAD_BYTES),
  };
}

export function createHeadFacts(): HeadFacts {
  return { words: new Uint32Array(HEAD_WORDS), bytes: new Uint8Array(HEAD_BYTES) };
}

/** Names of the head as numbers of one snapshot's table. */
export interface HeadNumbers {
  /** 1 + the class's index; 0 = none named. */
  readonly classNamed: number;
  readonly residency: number;
  readonly tenant: number;
}

/** What holds at the moment that an engine is chosen. */
export interface HeadMoment {
  /** Of the wall: threads share what is aged by it, and each has a monotonic clock of its own. */
  readonly wallMs: number;
  /** Whether first requests are placed by load. */
  readonly placement: boolean;
  /** State slots of the engines tried. */
  readonly tried: readonly number[];
}

/** Writes one request's facts over those of the request before. */
export function fillHead(
  facts: HeadFacts,
  head: RequestHead,
  numbers: HeadNumbers,
  { wallMs, placement, tried }: HeadMoment,
): void {
  const { words, bytes } = facts;
  words.fill(0, 0, HEAD.tried);
  words[HEAD.path] = head.pathId;
  words[HEAD.classNamed] = numbers.classNamed;
  words[HEAD.tenant] = numbers.tenant;
  words[HEAD.residency] = numbers.residency;
  words[HEAD.nowS] = wallMs / 1000;
  words[HEAD.placement] = placement ? 1 : 0;
  words[HEAD.sessionKeyBytes] = head.sessionKey?.length ?? 0;
  if (head.sessionKey !== null) bytes.set(head.sessionKey);
  const count = Math.min(tried.length, TRIED_MAX);
  words[HEAD.triedCount] = count;
  for (let i = 0; i < count; i++) words[HEAD.tried + i] = tried[i]!;
}

function joined(raw: readonly string[], name: string): string | null {
  let text: string | null = null;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    if (raw[i]!.length !== name.length || raw[i]!.toLowerCase() !== name) continue;
    text = text === null ? raw[i + 1]! : `${text}, ${raw[i + 1]!}`;
  }
  if (text === null) return null;
  const trimmed = text.trim();
  // Two empty headers join to a comma, which names nothing.
  return trimmed.replaceAll(",", "").trim() === "" ? null : trimmed;
}
