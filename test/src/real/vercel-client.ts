import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, isStepCount, jsonSchema, type LanguageModelUsage, streamText, tool } from "ai";
import {
  type Endpoint,
  MODEL,
  MOST_TOKENS,
  PROMPT,
  type RealClient,
  raised,
  type Said,
  sessionHeaders,
  TOOL,
} from "./client.ts";

/** `ai` with `@ai-sdk/openai`. */
export const vercel: RealClient = {
  name: "ai with @ai-sdk/openai",
  async say(at, { prompt = PROMPT, model = MODEL, signal } = {}) {
    const call = {
      model: modelOf(at, model),
      prompt,
      maxOutputTokens: MOST_TOKENS,
      maxRetries: 0,
      ...withSignal(signal),
    };
    const { text, finishReason, usage } = await generateText(call);
    return saidOf(text, finishReason, usage);
  },
  async stream(at, { prompt = PROMPT, model = MODEL, signal, onText } = {}) {
    let failure: unknown = null;
    const stream = streamText({
      model: modelOf(at, model),
      prompt,
      maxOutputTokens: MOST_TOKENS,
      maxRetries: 0,
      ...withSignal(signal),
      // It keeps errors from the reader of its text; without this it also prints them.
      onError: ({ error }) => {
        failure = error;
      },
    });
    for await (const text of stream.textStream) onText?.(text);
    if (failure !== null) throw failure;
    signal?.throwIfAborted();
    return saidOf(await stream.text, await stream.finishReason, await stream.usage);
  },
  async useTool(at, streaming) {
    const calls: { name: string; arguments: unknown }[] = [];
    const request = {
      model: modelOf(at, MODEL),
      prompt: PROMPT,
      maxOutputTokens: MOST_TOKENS,
      maxRetries: 0,
      // The library itself runs the function and asks again with what that gave.
      stopWhen: isStepCount(2),
      tools: {
        [TOOL.name]: tool({
          description: TOOL.description,
          inputSchema: jsonSchema<{ city: string }>(TOOL.schema),
          execute: async (input) => {
            calls.push({ name: TOOL.name, arguments: input });
            return TOOL.result;
          },
        }),
      },
    };
    const answer = streaming ? streamText(request) : await generateText(request);
    const steps = await answer.steps;
    const { text, finishReason, usage } = steps.at(-1)!;
    return { call: calls[0]!, after: saidOf(text, finishReason, usage) };
  },
  describe(error) {
    if (!APICallError.isInstance(error)) return raised(error);
    const { error: body } = (error.data ?? {}) as { error?: { code?: unknown; type?: unknown } };
    return raised(error, { status: error.statusCode, code: body?.code, type: body?.type });
  },
};

function modelOf(at: Endpoint, model: string) {
  return createOpenAI({ baseURL: `${at.url}/v1`, apiKey: "unused", headers: sessionHeaders(at) }).chat(model);
}

function withSignal(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal === undefined ? {} : { abortSignal: signal };
}

function saidOf(text: string, finish: string, { inputTokens = 0, outputTokens = 0 }: LanguageModelUsage): Said {
  return { text, finish, promptTokens: inputTokens, completionTokens: outputTokens };
}
