import { GuidevaneError } from "@guidevane/core";
import { badUsage, CommandFailure } from "./exit-code.ts";
import { type Answer, BlockedPort, fetchAnswer } from "./fetch-answer.ts";

/** The control plane of a `guidevane up` on its default ports. */
export const DEFAULT_CONTROL = "http://127.0.0.1:8170";

/** Asks a control plane's admin API. */
export interface ControlClient {
  /**
   * @throws GuidevaneError `bad_usage` with the control plane's words where it refuses what was asked; CommandFailure
   *   where it can't be reached or fails
   */
  get(path: string, query?: Readonly<Record<string, string | undefined>>): Promise<unknown>;
  post(path: string, body: unknown): Promise<unknown>;
}

export function controlClient(base: string, env: NodeJS.ProcessEnv): ControlClient {
  return adminClient(base, env, "control plane", "--control");
}

/**
 * Asks an admin API.
 *
 * @param what is asked, for the words of an error
 * @param flag that names it
 */
export function adminClient(base: string, env: NodeJS.ProcessEnv, what: string, flag: string): ControlClient {
  const url = URL.canParse(base) ? new URL(base) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) badUsage(flag, base, "must be an http or https URL");
  const token = env.GUIDEVANE_ADMIN_TOKEN;
  const headers = token === undefined || token === "" ? {} : { authorization: `Bearer ${token}` };

  async function ask(path: string, init: RequestInit): Promise<unknown> {
    const all = { ...init, headers: { ...headers, ...init.headers } };
    let reply: Answer;
    try {
      reply = await fetchAnswer(what, base.replace(/\/+$/, ""), path, all, ` (name one with ${flag} URL)`);
    } catch (error) {
      if (error instanceof BlockedPort) badUsage(flag, base, error.why);
      throw error;
    }
    let body: unknown;
    try {
      body = JSON.parse(reply.text);
    } catch {
      throw new CommandFailure(`${base} answers HTTP ${reply.status} and no JSON: it is no ${what}`);
    }
    if (reply.ok) return body;
    const { message = `HTTP ${reply.status}`, code } = (body as { error?: Refusal }).error ?? {};
    // The code never changes its meaning, whatever becomes of the words.
    const said = code === undefined ? message : `${message} (${code})`;
    if (reply.status === 400 || reply.status === 404) throw new GuidevaneError("bad_usage", said);
    throw new CommandFailure(`${base}: ${said}`);
  }

  return {
    get(path, query = {}) {
      const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
      const search = new URLSearchParams(given).toString();
      return ask(search === "" ? path : `${path}?${search}`, {});
    },
    post: (path, body) =>
      ask(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  };
}

/** What an admin API answers in `error`. */
interface Refusal {
  readonly message?: string;
  readonly code?: string;
}
