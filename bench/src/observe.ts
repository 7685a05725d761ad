import { ManualClock } from "@guidevane/core";
import { AnswerObserver, Decisions } from "@guidevane/gateway";
import type { BenchCase, BenchGroup } from "./case.ts";

const EVENTS = 256;
const DECISIONS = 1000;
const HEADERS = ["content-type", "text/event-stream"];
const PROMPT_TOKENS = 512;

/**
 * What a request and its answer are watched for beside the stream: reading an event as it passes, against `JSON.parse` of
 * the same one, and remembering a decision. Events of one chunk each, as an engine under load sends them: a chat's, which
 * differ in their text alone, and those of an API that numbers them.
 */
export const observe: BenchGroup = {
  name: "observe",
  async open() {
    const cases: BenchCase[] = [];
    const truths = new Map<string, unknown>();
    for (const [label, event] of [
      ["chat", chatEvent],
      ["numbered", numberedEvent],
    ] as const) {
      const chunks = Array.from({ length: EVENTS }, (_, at) => Buffer.from(`data: ${event(at)}\n\n`));
      const question = `tokens of ${EVENTS} ${label} events`;
      truths.set(question, EVENTS);
      cases.push(
        contestant(`observe/observer/${label}/×${EVENTS}`, question, () => observed(chunks)),
        contestant(`observe/JSON.parse/${label}/×${EVENTS}`, question, () => parsed(chunks)),
      );
    }
    const decisions = new Decisions({ cluster: "c", clock: new ManualClock(), entries: 10 * DECISIONS });
    const question = `the last of ${DECISIONS} decisions`;
    truths.set(question, `r-${DECISIONS - 1}`);
    cases.push({
      name: `observe/decision/one-attempt/×${DECISIONS}`,
      batch: DECISIONS,
      question,
      run: () => remember(decisions),
      answer() {
        remember(decisions);
        return decisions.find(`r-${DECISIONS - 1}`)?.id;
      },
    });
    return { cases, truths, missing: [], async close() {} };
  },
};

function contestant(name: string, question: string, run: () => number): BenchCase {
  return { name, batch: EVENTS, question, run, answer: run };
}

function chatEvent(at: number): string {
  const choices = [{ index: 0, delta: { content: ` word${at}` }, logprobs: null, finish_reason: null }];
  return JSON.stringify({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices,
    usage: usage(at + 1),
  });
}

function usage(completion: number): object {
  // The last one stands, so the others can be left as they are.
  return { prompt_tokens: PROMPT_TOKENS, completion_tokens: completion === EVENTS ? completion : 1 };
}

function numberedEvent(at: number): string {
  return JSON.stringify({
    type: "response.output_text.delta",
    sequence_number: at,
    item_id: "m",
    delta: ` w${at}`,
    usage: usage(at + 1),
  });
}

function observed(chunks: readonly Buffer[]): number {
  const observer = new AnswerObserver(200, HEADERS, rethrow);
  for (const [at, chunk] of chunks.entries()) observer.see(chunk, at);
  return observer.facts().completionTokens ?? 0;
}

function parsed(chunks: readonly Buffer[]): number {
  let tokens = 0;
  for (const chunk of chunks) {
    const event = JSON.parse(chunk.toString("utf8", "data: ".length)) as { usage: { completion_tokens: number } };
    tokens = event.usage.completion_tokens;
  }
  return tokens;
}

function remember(decisions: Decisions): number {
  for (let at = 0; at < DECISIONS; at++) {
    const draft = decisions.begin(`r-${at}`, "/v1/chat/completions");
    draft.className = "chat";
    draft.model = "llama-3.1-70b";
    draft.home = "use1-a";
    draft.attempts = ATTEMPTS;
    draft.outcome = "success";
    decisions.end(draft);
  }
  return decisions.bytes;
}

const ATTEMPTS = [
  {
    engine: "use1-a",
    reason: "home",
    outcome: "success",
    status: 200,
    connectMs: null,
    headMs: 3,
    firstTokenMs: 40,
    endMs: 900,
    bytes: 12_345,
    failure: null,
    retryAfterMs: null,
    answer: null,
  },
] as const;

function rethrow(error: unknown): void {
  throw error;
}
