/** An error that an engine told inside a 200. */
export interface AnswerError {
  /** The HTTP status it stands for: the one that it names, else its code where that is one, else what its words mean, else 502. */
  readonly status: number;
  readonly code: string | null;
  readonly type: string | null;
}

/** @param status as the engine named it, in a member of its own; null = in none */
export function answerError(status: number | null, code: string | number | null, type: string | null): AnswerError {
  return {
    status:
      statusIn(status) ??
      statusIn(code) ??
      meaningOf(type) ??
      (typeof code === "string" ? meaningOf(code) : null) ??
      UNKNOWN,
    code: code === null ? null : String(code),
    type,
  };
}

/** An engine that says no more than that it failed. */
const UNKNOWN = 502;

function statusIn(value: string | number | null): number | null {
  const number = Number(value ?? Number.NaN);
  return number >= 400 && number <= 599 ? number : null;
}

/** What the words of OpenAI, Anthropic, vLLM, SGLang, llama.cpp, TGI and Groq mean. Anthropic's 529 is a 503 to all others. */
const MEANINGS: ReadonlyMap<string, number> = new Map([
  ...words(400, "invalidrequest", "badrequest", "invalidparameter", "invalidprompt", "contextlengthexceeded"),
  ...words(400, "exceedcontextsize", "toolusefailed", "contentfilter"),
  ...words(401, "authentication", "invalidapikey"),
  ...words(403, "permission", "permissiondenied"),
  ...words(404, "notfound", "modelnotfound"),
  ...words(413, "requesttoolarge"),
  ...words(422, "validation", "unprocessableentity"),
  ...words(429, "ratelimit", "ratelimitexceeded", "toomanyrequests", "insufficientquota"),
  ...words(500, "api", "server", "internal", "internalserver", "generation"),
  ...words(503, "overloaded", "serviceunavailable", "unavailable", "unhealthy"),
  ...words(504, "timeout"),
]);

function words(status: number, ...each: string[]): [string, number][] {
  return each.map((word) => [word, status]);
}

function meaningOf(word: string | null): number | null {
  if (word === null) return null;
  // `rate_limit_error`, `RateLimitError` and `Rate Limit` are one word.
  const plain = word.toLowerCase().replace(/[^a-z]/g, "");
  return MEANINGS.get(plain.replace(/error$/, "")) ?? null;
}
