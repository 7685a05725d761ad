/** What the tests ask of every client library: each of them says it in its own way, and tells its errors in its own classes. */
export interface RealClient {
  /** Package, and its way in where it has several. */
  readonly name: string;
  /** A whole answer. */
  say(at: Endpoint, wish?: Wish): Promise<Said>;
  /** A streamed answer; `onText` hears each piece as it comes. */
  stream(at: Endpoint, wish?: Wish & { onText?: (text: string) => void }): Promise<Said>;
  /** Asks with a function given, answers the call that comes, and reads what is said then. */
  useTool(at: Endpoint, streaming: boolean): Promise<{ readonly call: ToolCall; readonly after: Said }>;
  /** What a user who catches it can tell an error by. */
  describe(error: unknown): Raised;
}

/** An engine or a gateway: its address without a path. */
export interface Endpoint {
  readonly url: string;
  /** Requests with one session go to one engine. */
  readonly session?: string;
}

export interface Wish {
  readonly prompt?: string;
  readonly model?: string;
  readonly signal?: AbortSignal;
}

export interface Said {
  readonly text: string;
  /** Why it ended, in the client's words. */
  readonly finish: string | null;
  /** Cached ones included: which those are depends on what the engine was asked before. */
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export interface ToolCall {
  readonly name: string;
  readonly arguments: unknown;
}

export interface Raised {
  readonly class: string;
  readonly status: number | undefined;
  readonly code: unknown;
  readonly type: unknown;
  readonly message: string;
}

export const MODEL = "tiny";
export const PROMPT = "Tell me something.";
export const TOOL = {
  name: "get_weather",
  description: "The weather in a city.",
  schema: { type: "object" as const, properties: { city: { type: "string" as const } }, required: ["city"] },
  result: "12 degrees and rain",
};
/** The model goes on with this until it may no more: seconds of work, unless it is broken off. */
export const ENDLESS_PROMPT = "Go on without end.";
export const MOST_TOKENS = 7000;

export function sessionHeaders({ session }: Endpoint): Record<string, string> {
  return session === undefined ? {} : { "x-session-id": session };
}

/** The fields that errors of these libraries have in common. */
export function raised(error: unknown, more: Partial<Raised> = {}): Raised {
  const { status, code, type, message } = error as Partial<Raised>;
  const name = (error as object).constructor.name;
  return { class: name, status, code, type, message: String(message), ...more };
}
