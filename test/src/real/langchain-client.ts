import {
  type AIMessage,
  type AIMessageChunk,
  HumanMessage,
  ToolMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
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

function modelOf(at: Endpoint, model = MODEL): ChatOpenAI {
  return new ChatOpenAI({
    model,
    apiKey: "unused",
    maxRetries: 0,
    streamUsage: true,
    configuration: { baseURL: `${at.url}/v1`, defaultHeaders: sessionHeaders(at) },
    maxTokens: MOST_TOKENS,
  });
}

/** `@langchain/openai`. */
export const langchain: RealClient = {
  name: "@langchain/openai",
  async say(at, { prompt = PROMPT, model, signal } = {}) {
    return saidOf(await modelOf(at, model).invoke(prompt, signal === undefined ? {} : { signal }));
  },
  async stream(at, { prompt = PROMPT, model, signal, onText } = {}) {
    const stream = await modelOf(at, model).stream(prompt, signal === undefined ? {} : { signal });
    return saidOf(await gather(stream, onText));
  },
  async useTool(at, streaming) {
    const bound = modelOf(at).bindTools([
      { type: "function", function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.schema } },
    ]);
    const ask = async (messages: (HumanMessage | AIMessage | ToolMessage)[]) =>
      streaming ? gather(await bound.stream(messages)) : bound.invoke(messages);
    const asked = new HumanMessage(PROMPT);
    const answer = await ask([asked]);
    const { id, name, args } = answer.tool_calls![0]!;
    const after = await ask([asked, answer, new ToolMessage({ content: TOOL.result, tool_call_id: id! })]);
    return { call: { name, arguments: args }, after: saidOf(after) };
  },
  describe: raised,
};

async function gather(stream: AsyncIterable<AIMessageChunk>, onText?: (text: string) => void): Promise<AIMessageChunk> {
  let whole: AIMessageChunk | null = null;
  for await (const chunk of stream) {
    if (typeof chunk.content === "string") onText?.(chunk.content);
    whole = whole === null ? chunk : whole.concat(chunk);
  }
  if (whole === null) throw new Error("a stream of nothing");
  return whole;
}

function saidOf({ content, response_metadata, ...rest }: AIMessage | AIMessageChunk): Said {
  const usage = rest.usage_metadata as UsageMetadata | undefined;
  return {
    text: typeof content === "string" ? content : JSON.stringify(content),
    finish: (response_metadata.finish_reason as string | undefined) ?? null,
    promptTokens: usage?.input_tokens ?? 0,
    completionTokens: usage?.output_tokens ?? 0,
  };
}
