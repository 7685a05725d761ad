import { CommandFailure } from "./exit-code.ts";

export interface Answer {
  readonly status: number;
  readonly ok: boolean;
  readonly text: string;
}

/**
 * Asks an admin address.
 *
 * @param what is asked, for the words of an error
 * @param hint said after the reason where nobody answers
 * @throws BlockedPort; CommandFailure where nobody answers
 */
export async function fetchAnswer(
  what: string,
  base: string,
  path: string,
  init: RequestInit,
  hint = "",
): Promise<Answer> {
  try {
    const reply = await fetch(`${base}${path}`, init);
    return { status: reply.status, ok: reply.ok, text: await reply.text() };
  } catch (error) {
    if (isBlocked(error)) throw new BlockedPort(what, base);
    throw new CommandFailure(`no ${what} answers at ${base}: ${reasonOf(error)}${hint}`);
  }
}

/**
 * Fetch connects to no port that another protocol is known by (6000 is X11's), whoever listens there: neither does this
 * program's nor a browser's, which could not show the page of a control plane there.
 */
export class BlockedPort extends CommandFailure {
  /** For the end of a sentence that names the address. */
  readonly why: string;

  constructor(what: string, base: string) {
    const why = `port ${new URL(base).port} is blocked by the fetch standard, here and in browsers: serve the ${what}'s admin address on another one`;
    super(`${base}: ${why}`);
    this.why = why;
  }
}

function isBlocked(error: unknown): boolean {
  return error instanceof Error && error.cause instanceof Error && error.cause.message === "bad port";
}

/** Why a fetch failed: the socket's reason is in the cause. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof Error && "code" in cause) return String(cause.code);
  return error instanceof Error ? error.message : String(error);
}
