import { countTokens, emulatedEmbedding } from "./answer-text.ts";

/** The OpenAI API as vLLM speaks it: requests read, answers written. Pure; what an emulated engine sends is decided here. */

export interface GenerationRequest {
  readonly kind: "chat" | "completion";
  readonly model: string;
  readonly prompt: string;
  /** What all turns of the conversation begin with: up to the first turn of the user, or the prompt's first bytes. */
  readonly opening: string;
  readonly promptTokens: number;
  /** null = the caller set no limit. */
  readonly maxTokens: number | null;
  readonly stream: boolean;
  readonly includeUsage: boolean;
}

export interface EmbeddingRequest {
  readonly kind: "embedding";
  readonly model: string;
  readonly inputs: readonly string[];
  readonly promptTokens: number;
  readonly base64: boolean;
  readonly dimensions: number;
}

/** What is wrong with a request; each kind of engine says it in a form of its own. */
export interface ApiError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  readonly param: string | null;
}

export type Read<Request> = { readonly request: Request } | { readonly error: ApiError };

export function readGeneration(kind: "chat" | "completion", body: string): Read<GenerationRequest> {
  const data = parseObject(body);
  if (data === null) return bad("JSON decode error", null);
  const prompt = kind === "chat" ? chatPrompt(data.messages) : textOf(data.prompt);
  const field = kind === "chat" ? "messages" : "prompt";
  if (prompt === null) return bad(`Field required: ${field}`, field);
  if (data.n !== undefined && data.n !== null && data.n !== 1) return bad("the emulator gives one choice, n=1", "n");
  const limitName = kind === "chat" && data.max_completion_tokens != null ? "max_completion_tokens" : "max_tokens";
  const limit = data[limitName];
  if (limit != null && !isCount(limit, MAX_TOKENS))
    return bad(`${limitName} must be 1 to ${MAX_TOKENS}, got ${shown(limit)}.`, limitName);
  const options = data.stream_options as { include_usage?: unknown } | null | undefined;
  return {
    request: {
      kind,
      model: typeof data.model === "string" ? data.model : "",
      prompt,
      opening: kind === "chat" ? openingOf(data.messages as readonly unknown[]) : prompt.slice(0, OPENING_LENGTH),
      promptTokens: countTokens(prompt),
      maxTokens: (limit as number | null | undefined) ?? null,
      stream: data.stream === true,
      includeUsage: options?.include_usage === true,
    },
  };
}

export function readEmbedding(body: string): Read<EmbeddingRequest> {
  const data = parseObject(body);
  if (data === null) return bad("JSON decode error", null);
  const inputs = Array.isArray(data.input) ? data.input : [data.input];
  if (inputs.length === 0 || !inputs.every((each) => typeof each === "string"))
    return bad("input must be a string or an array of strings", "input");
  const dimensions = data.dimensions ?? DEFAULT_DIMENSIONS;
  if (!isCount(dimensions, MAX_DIMENSIONS))
    return bad(`dimensions must be 1 to ${MAX_DIMENSIONS}, got ${shown(dimensions)}`, "dimensions");
  return {
    request: {
      kind: "embedding",
      model: typeof data.model === "string" ? data.model : "",
      inputs: inputs as string[],
      promptTokens: (inputs as string[]).reduce((total, each) => total + countTokens(each), 0),
      base64: data.encoding_format === "base64",
      dimensions,
    },
  };
}

/** What identifies one answer. */
export interface AnswerStamp {
  readonly id: string;
  readonly model: string;
  readonly createdS: number;
}

/** Tokens of an answer that has ended. */
export interface AnswerTokens {
  readonly prompt: number;
  /** Of the prompt's, those found in the cache. */
  readonly cached: number;
  readonly completion: number;
}

function usageOf({ prompt, cached, completion }: AnswerTokens): object {
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    completion_tokens: completion,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

export type FinishReason = "stop" | "length";

export function wholeAnswer(
  request: GenerationRequest,
  stamp: AnswerStamp,
  text: string,
  finish: FinishReason,
  tokens: AnswerTokens,
): string {
  const chat = request.kind === "chat";
  return JSON.stringify({
    id: stamp.id,
    object: chat ? "chat.completion" : "text_completion",
    created: stamp.createdS,
    model: stamp.model,
    choices: [
      {
        index: 0,
        ...(chat ? { message: { role: "assistant", content: text, refusal: null } } : { text }),
        logprobs: null,
        finish_reason: finish,
        stop_reason: null,
      },
    ],
    usage: usageOf(tokens),
  });
}

/** The event that opens a chat stream: the role. Text completions have none. */
export function openingEvent(request: GenerationRequest, stamp: AnswerStamp): string {
  return request.kind === "chat" ? event(request, stamp, { delta: { role: "assistant", content: "" } }, null) : "";
}

export function tokenEvent(request: GenerationRequest, stamp: AnswerStamp, word: string): string {
  return event(request, stamp, request.kind === "chat" ? { delta: { content: word } } : { text: word }, null);
}

/** Finish reason, usage where it was asked for, and the terminator. */
export function closingEvents(
  request: GenerationRequest,
  stamp: AnswerStamp,
  finish: FinishReason,
  tokens: AnswerTokens,
): string {
  const last = event(request, stamp, request.kind === "chat" ? { delta: {} } : { text: "" }, finish);
  const usage = request.includeUsage
    ? `data: ${JSON.stringify({ ...head(request, stamp), choices: [], usage: usageOf(tokens) })}\n\n`
    : "";
  return `${last}${usage}data: [DONE]\n\n`;
}

export function embeddingAnswer(request: EmbeddingRequest, stamp: AnswerStamp): string {
  const data = request.inputs.map((input, index) => {
    const vector = emulatedEmbedding(input, request.dimensions);
    // Python's client asks for base64: little-endian floats of 32 bits.
    const embedding = request.base64 ? Buffer.from(Float32Array.from(vector).buffer).toString("base64") : vector;
    return { object: "embedding", index, embedding };
  });
  const usage = { prompt_tokens: request.promptTokens, total_tokens: request.promptTokens };
  return JSON.stringify({ id: stamp.id, object: "list", created: stamp.createdS, model: stamp.model, data, usage });
}

const DEFAULT_DIMENSIONS = 16;
const MAX_DIMENSIONS = 4096;
/** An answer is drawn up whole before its first token. */
const MAX_TOKENS = 1_048_576;
const OPENING_LENGTH = 256;

function head(request: GenerationRequest, stamp: AnswerStamp): object {
  const object = request.kind === "chat" ? "chat.completion.chunk" : "text_completion";
  return { id: stamp.id, object, created: stamp.createdS, model: stamp.model };
}

function event(request: GenerationRequest, stamp: AnswerStamp, part: object, finish: FinishReason | null): string {
  const choice = { index: 0, ...part, logprobs: null, finish_reason: finish };
  return `data: ${JSON.stringify({ ...head(request, stamp), choices: [choice] })}\n\n`;
}

function isCount(value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max;
}

/** What is no number may be nested too deep to be written. */
function shown(value: unknown): string {
  return typeof value === "number" ? String(value) : `a value of type ${typeof value}`;
}

function bad(message: string, param: string | null): { error: ApiError } {
  return { error: { status: 400, type: "BadRequestError", message, param } };
}

function parseObject(body: string): Record<string, unknown> | null {
  try {
    const data: unknown = JSON.parse(body);
    return typeof data === "object" && data !== null && !Array.isArray(data) ? (data as Record<string, unknown>) : null;
  } catch {
    // The caller answers 400: a body that is not JSON is an answer, not a fault of ours.
    return null;
  }
}

/** The text of all turns; roles are left out of the count, as prompt bytes ÷ 4 is an estimate anyway. */
function chatPrompt(messages: unknown): string | null {
  if (!Array.isArray(messages) || messages.length === 0) return null;
  return messages.map((message) => textOf((message as { content?: unknown } | null)?.content) ?? "").join("\n");
}

function openingOf(messages: readonly unknown[]): string {
  const first = messages.findIndex((message) => (message as { role?: unknown } | null)?.role === "user");
  return chatPrompt(messages.slice(0, first < 0 ? 1 : first + 1)) ?? "";
}

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return null;
  return value
    .map((part) => {
      const text: unknown = typeof part === "string" ? part : (part as { text?: unknown } | null)?.text;
      return typeof text === "string" ? text : "";
    })
    .join("");
}
