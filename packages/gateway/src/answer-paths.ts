import { USAGE_PATHS } from "./answer-usage.ts";
import { compilePaths, type PathNode } from "./json-paths.ts";

/** Ids of what is read of an answer beside its usage. */
export const PLACE = {
  type: 1,
  error: 2,
  errorCode: 3,
  errorType: 4,
  /** `"error"` marks an error of older vLLM and of SGLang, `"response"` an answer of the Responses API. */
  object: 5,
  choice: 6,
  choiceIndex: 7,
  finish: 8,
  /** Filled where the answer goes on by some text, reasoning or tool call. */
  content: 9,
  /** A tool call of Messages begins: its name. */
  blockName: 10,
  responseId: 11,
  responseStatus: 12,
  id: 13,
  promptTimed: 14,
  completionTimed: 15,
  cachedTimed: 16,
  errorStatus: 17,
  /** The text of a delta whose event's type says that it has content. */
  text: 18,
} as const;

const ERROR_PATHS = [
  ["error", PLACE.error],
  ["error.code", PLACE.errorCode],
  ["error.status_code", PLACE.errorStatus],
  ["error.http_status_code", PLACE.errorStatus],
  ["error.type", PLACE.errorType],
  ["response.error", PLACE.error],
  ["response.error.code", PLACE.errorCode],
  ["code", PLACE.errorCode],
  ["error_type", PLACE.errorType],
  ["object", PLACE.object],
  ["type", PLACE.type],
] as const;

const CHOICE_PATHS = [
  ["choices[]", PLACE.choice],
  ["choices[].index", PLACE.choiceIndex],
  ["choices[].finish_reason", PLACE.finish],
] as const;

/** llama.cpp tells its own count with every last chunk, asked for or not. */
const TIMING_PATHS = [
  ["timings.prompt_n", PLACE.promptTimed],
  ["timings.predicted_n", PLACE.completionTimed],
  ["timings.cache_n", PLACE.cachedTimed],
] as const;

/** What is looked at in one event of a stream: chat, completions, Messages and Responses alike. */
export const EVENT_ROOT: PathNode = compilePaths([
  ...ERROR_PATHS,
  ...CHOICE_PATHS,
  ...TIMING_PATHS,
  ...USAGE_PATHS,
  // A delta's role comes before there is anything to read.
  ["choices[].delta.role", 0],
  ["choices[].delta.*", PLACE.content],
  ["choices[].text", PLACE.content],
  ["content_block.name", PLACE.blockName],
  ["delta.stop_reason", PLACE.finish],
  ["delta", PLACE.text],
  ["delta.text", PLACE.text],
  ["delta.thinking", PLACE.text],
  ["delta.partial_json", PLACE.text],
  ["response.id", PLACE.responseId],
  ["response.status", PLACE.responseStatus],
]);

/** What is looked at in an answer that is one document: those APIs, embeddings, rerank and score. */
export const BODY_ROOT: PathNode = compilePaths([
  ...ERROR_PATHS,
  ...CHOICE_PATHS,
  ...TIMING_PATHS,
  ...USAGE_PATHS,
  ["id", PLACE.id],
  ["status", PLACE.responseStatus],
  ["stop_reason", PLACE.finish],
]);
