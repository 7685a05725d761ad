import Anthropic from "@anthropic-ai/sdk";
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
  new Anthropic({ baseURL: at.url, apiKey: "unused", maxRetries: 0, defaultHeaders: sessionHeaders(at) });
const user = (content: Anthropic.MessageParam["content"]): Anthropic.MessageParam => ({ role: "user", content });
const tools: Anthropic.Tool[] = [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.schema }];

/** `@anthropic-ai/sdk`, messages. */
export const anthropic: RealClient = {
  name: "@anthropic-ai/sdk",
  async say(at, { prompt = PROMPT, model = MODEL, signal } = {}) {
    const answer = await clientOf(at).messages.create(
      { model, max_tokens: MOST_TOKENS, messages: [user(prompt)] },
      { signal: signal ?? null },
    );
    return saidOf(answer);
  },
  async stream(at, { prompt = PROMPT, model = MODEL, signal, onText } = {}) {
    const stream = clientOf(at).messages.stream(
      { model, max_tokens: MOST_TOKENS, messages: [user(prompt)] },
      { signal: signal ?? null },
    );
    stream.on("text", (text) => onText?.(text));
    return saidOf(await stream.finalMessage());
  },
  async useTool(at, streaming) {
    const { messages: api } = clientOf(at);
    const ask = (messages: Anthropic.MessageParam[]) => {
      const request = { model: MODEL, max_tokens: MOST_TOKENS, messages, tools };
      return streaming ? api.stream(request).finalMessage() : api.create(request);
    };
    const asked = [user(PROMPT)];
    const { content } = await ask(asked);
    const call = content.find((block) => block.type === "tool_use")!;
    const result: Anthropic.ToolResultBlockParam = {
      type: "tool_result",
      tool_use_id: call.id,
      content: TOOL.result,
    };
    const after = await ask([...asked, { role: "assistant", content }, user([result])]);
    return { call: { name: call.name, arguments: call.input }, after: saidOf(after) };
  },
  describe: (error) => raised(error, { code: errorOf(error)?.code, type: errorOf(error)?.type }),
};

/** Tokens of a prompt, by an endpoint that no other API has. */
export async function countTokens(at: Endpoint): Promise<number> {
  const { input_tokens } = await clientOf(at).messages.countTokens({ model: MODEL, messages: [user(PROMPT)] });
  return input_tokens;
}

/** The error object within the body that the SDK keeps whole. */
function errorOf(error: unknown): { code?: unknown; type?: unknown } | undefined {
  return (error as { error?: { error?: { code?: unknown; type?: unknown } } }).error?.error;
}

function saidOf({ content, stop_reason, usage }: Anthropic.Message): Said {
  return {
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    finish: stop_reason,
    promptTokens: usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
    completionTokens: usage.output_tokens,
  };
}
