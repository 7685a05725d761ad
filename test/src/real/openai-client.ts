import OpenAI from "openai";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources/chat/completions";
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

const clientOf = (at: Endpoint) =>
  new OpenAI({ baseURL: `${at.url}/v1`, apiKey: "unused", maxRetries: 0, defaultHeaders: sessionHeaders(at) });
const user = (content = PROMPT): ChatCompletionMessageParam => ({ role: "user", content });
const tools: ChatCompletionTool[] = [
  { type: "function", function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.schema } },
];

/** `openai`, chat completions. */
export const openaiChat: RealClient = {
  name: "openai, chat",
  async say(at, { prompt, model = MODEL, signal } = {}) {
    const answer = await clientOf(at).chat.completions.create({ model, messages: [user(prompt)] }, { signal });
    return saidOf(answer);
  },
  async stream(at, { prompt, model = MODEL, signal, onText } = {}) {
    const stream = clientOf(at).chat.completions.stream(
      {
        model,
        messages: [user(prompt)],
        stream_options: { include_usage: true },
        max_tokens: MOST_TOKENS,
      },
      { signal },
    );
    stream.on("content", (delta) => onText?.(delta));
    return saidOf(await stream.finalChatCompletion());
  },
  async useTool(at, streaming) {
    const client = clientOf(at);
    const ask = async (messages: ChatCompletionMessageParam[]) => {
      const request = { model: MODEL, messages, tools };
      if (!streaming) return client.chat.completions.create(request);
      return client.chat.completions
        .stream({ ...request, stream_options: { include_usage: true } })
        .finalChatCompletion();
    };
    const asked = [user()];
    const { message } = (await ask(asked)).choices[0]!;
    const call = message.tool_calls![0]!;
    if (call.type !== "function") throw new Error(`a call of ${call.type}`);
    const result = { role: "tool" as const, tool_call_id: call.id, content: TOOL.result };
    const after = saidOf(await ask([...asked, message, result]));
    return { call: { name: call.function.name, arguments: JSON.parse(call.function.arguments) }, after };
  },
  describe: raised,
};

function saidOf({ choices, usage }: OpenAI.ChatCompletion): Said {
  const [{ message, finish_reason }] = choices as [OpenAI.ChatCompletion.Choice];
  return {
    text: message.content ?? "",
    finish: finish_reason,
    promptTokens: usage!.prompt_tokens,
    completionTokens: usage!.completion_tokens,
  };
}

const functions: OpenAI.Responses.FunctionTool[] = [
  { type: "function", name: TOOL.name, description: TOOL.description, parameters: TOOL.schema, strict: false },
];

/** `openai`, responses. */
export const openaiResponses: RealClient = {
  name: "openai, responses",
  async say(at, { prompt = PROMPT, model = MODEL, signal } = {}) {
    return answered(await clientOf(at).responses.create({ model, input: prompt }, { signal }));
  },
  async stream(at, { prompt = PROMPT, model = MODEL, signal, onText } = {}) {
    const request = { model, input: prompt, max_output_tokens: MOST_TOKENS, stream: true as const };
    return answered(await completed(await clientOf(at).responses.create(request, { signal }), onText));
  },
  async useTool(at, streaming) {
    const client = clientOf(at);
    const ask = async (input: OpenAI.Responses.ResponseInputItem[]) => {
      const request = { model: MODEL, input, tools: functions };
      if (!streaming) return client.responses.create(request);
      return completed(await client.responses.create({ ...request, stream: true }));
    };
    const asked: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: PROMPT }];
    const { output }: OpenAI.Responses.Response = await ask(asked);
    const call = output.find(isCall)!;
    const { call_id, name, arguments: given } = call;
    const after = await ask([
      ...asked,
      { type: "function_call", call_id, name, arguments: given },
      { type: "function_call_output", call_id, output: TOOL.result },
    ]);
    return { call: { name, arguments: JSON.parse(given) }, after: answered(after) };
  },
  describe: raised,
};

/** The events themselves: the SDK's own gathering of them wants fields that llama.cpp leaves out. */
async function completed(
  events: AsyncIterable<OpenAI.Responses.ResponseStreamEvent>,
  onText?: (text: string) => void,
): Promise<OpenAI.Responses.Response> {
  for await (const event of events) {
    if (event.type === "response.output_text.delta") onText?.(event.delta);
    if (event.type === "response.completed") return event.response;
  }
  throw new Error("the stream ended without response.completed");
}

function answered({ output, status, usage }: OpenAI.Responses.Response): Said {
  const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
  return {
    text: parts.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
    finish: status ?? null,
    promptTokens: usage!.input_tokens,
    completionTokens: usage!.output_tokens,
  };
}

function isCall(item: OpenAI.Responses.ResponseOutputItem): item is OpenAI.Responses.ResponseFunctionToolCall {
  return item.type === "function_call";
}
