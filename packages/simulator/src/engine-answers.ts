import type { ServerResponse } from "node:http";
import type { Clock } from "@guidevane/core";
import { BYTES_PER_TOKEN, emulatedWords, hashText } from "./answer-text.ts";
import type { Controls } from "./emulator-controls.ts";
import { type Answering, BLOCK_TOKENS, type EngineModel, type ModelRequest } from "./engine-model.ts";
import type { EngineStats } from "./engine-stats.ts";
import {
  type AnswerStamp,
  closingEvents,
  type EmbeddingRequest,
  embeddingAnswer,
  type FinishReason,
  type GenerationRequest,
  openingEvent,
  tokenEvent,
  wholeAnswer,
} from "./openai-answer.ts";
import { NO_BLOCKS, promptBlocksOf } from "./prompt-blocks.ts";
import { sendJson } from "./send-json.ts";

/** Counts since it started. `aborted`: the client went before the answer's end. */
export interface EmulatedEngineCounts {
  readonly admitted: number;
  readonly finished: number;
  readonly aborted: number;
  readonly inFlight: number;
}

export interface AnswerParts {
  readonly model: EngineModel;
  readonly stats: EngineStats;
  readonly clock: Clock;
  /** The name in answers to requests that give none. */
  readonly ownModel: string;
  /** Tokens of an answer whose length nobody set. */
  readonly usualTokens: number;
  readonly headAtOnce: boolean;
  readonly controls: () => Controls;
}

/** Answers what an emulated engine has admitted, in the time that its model takes. */
export class EngineAnswers {
  readonly #parts: AnswerParts;
  readonly #listeners = new Set<(counts: EmulatedEngineCounts) => void>();
  #admitted = 0;
  #finished = 0;
  #aborted = 0;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
  }

  get counts(): EmulatedEngineCounts {
    const inFlight = this.#admitted - this.#finished - this.#aborted;
    return { admitted: this.#admitted, finished: this.#finished, aborted: this.#aborted, inFlight };
  }

  watch(listener: (counts: EmulatedEngineCounts) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  generate(response: ServerResponse, request: GenerationRequest): void {
    const { stats, usualTokens, headAtOnce } = this.#parts;
    const outputTokens = request.maxTokens ?? usualTokens;
    const finish: FinishReason = request.maxTokens === null ? "stop" : "length";
    const words = emulatedWords(request.prompt, outputTokens);
    const text = words.join("");
    const stamp = this.#stamp(request.kind === "chat" ? "chatcmpl" : "cmpl", request.model);
    // The turns of a chat are joined by a byte, here and when the client sends this one again.
    const after = request.kind === "chat" ? `\n${text}` : text;
    const blocks = promptBlocksOf(request.prompt, after, BLOCK_TOKENS * BYTES_PER_TOKEN);
    const size = { promptTokens: request.promptTokens, outputTokens, blocks, key: hashText(request.opening) };
    const answer = this.#admit(response, request.promptTokens);
    const tokens = () => ({ prompt: request.promptTokens, cached: answer.cachedTokens, completion: outputTokens });

    if (!request.stream) {
      this.#serve(response, answer, size, {
        ended: () => {
          stats.generationTokens += outputTokens;
          this.#recordEnd(answer, finish, outputTokens);
          sendJson(response, 200, wholeAnswer(request, stamp, text, finish, tokens()));
        },
      });
      return;
    }
    const sendTo = (count: number): void => {
      const { breakAfterTokens } = this.#parts.controls();
      let chunk = answer.sent === 0 ? openingEvent(request, stamp) : "";
      // What fell due in one turn of the loop is written once.
      for (let i = answer.sent; i < count; i++) chunk += tokenEvent(request, stamp, words[i]!);
      stats.generationTokens += count - answer.sent;
      answer.sent = count;
      response.write(chunk);
      if (breakAfterTokens !== null && count >= breakAfterTokens) this.#over(response, answer);
    };
    if (headAtOnce) sendHead(response);
    this.#serve(response, answer, size, {
      tokens: sendTo,
      ended: () => {
        if (answer.sent < outputTokens) sendTo(outputTokens);
        if (answer.over) return;
        this.#recordEnd(answer, finish, outputTokens);
        response.end(closingEvents(request, stamp, finish, tokens()));
      },
    });
  }

  embed(response: ServerResponse, request: EmbeddingRequest): void {
    const size = { promptTokens: request.promptTokens, outputTokens: 0, blocks: NO_BLOCKS, key: this.#admitted };
    this.#serve(response, this.#admit(response, request.promptTokens), size, {
      ended: () => {
        this.#parts.stats.finished.stop += 1;
        sendJson(response, 200, embeddingAnswer(request, this.#stamp("embd", request.model)));
      },
    });
  }

  #admit(response: ServerResponse, promptTokens: number): Answer {
    const { stats, clock } = this.#parts;
    const startMs = clock.nowMs();
    const answer: Answer = { startMs, firstMs: startMs, cachedTokens: 0, begun: false, sent: 0, over: false, id: null };
    this.#admitted += 1;
    stats.promptTokens += promptTokens;
    response.once("close", () => {
      answer.over = true;
      if (answer.id !== null) this.#parts.model.cancel(answer.id);
      if (response.writableFinished) {
        this.#finished += 1;
        stats.requestSeconds.record((clock.nowMs() - answer.startMs) / 1000);
      } else {
        this.#aborted += 1;
        stats.finished.abort += 1;
      }
      this.#tell();
    });
    this.#tell();
    return answer;
  }

  /** Hands a request to the model, unless the engine hangs: then nothing more ever happens to it. */
  #serve(
    response: ServerResponse,
    answer: Answer,
    size: ModelRequest,
    { tokens, ended }: Pick<Answering, "tokens" | "ended">,
  ): void {
    const { model, stats, clock, controls } = this.#parts;
    if (controls().hang) return;
    const unlessOver = <Given extends unknown[]>(task: (...given: Given) => void) => {
      return (...given: Given): void => {
        if (!answer.over) task(...given);
      };
    };
    answer.id = model.take(size, {
      began: unlessOver((cachedTokens: number) => {
        // A second time it finds what it wrote itself.
        if (answer.begun) return;
        answer.begun = true;
        answer.cachedTokens = cachedTokens;
        stats.cachedTokens += cachedTokens;
        if (tokens !== undefined && !response.headersSent) sendHead(response);
      }),
      first: () => {
        answer.firstMs = clock.nowMs();
        if (size.outputTokens > 0) stats.ttftSeconds.record((answer.firstMs - answer.startMs) / 1000);
      },
      ...(tokens === undefined ? {} : { tokens: unlessOver(tokens) }),
      ended: unlessOver(ended),
    });
  }

  #over(response: ServerResponse, answer: Answer): void {
    answer.over = true;
    response.destroy();
  }

  #recordEnd(answer: Answer, finish: FinishReason, tokens: number): void {
    const { stats, clock } = this.#parts;
    stats.finished[finish] += 1;
    const tokenMs = (clock.nowMs() - answer.firstMs) / tokens;
    if (tokens > 1) stats.tokenSeconds.record(tokenMs / 1000, tokens - 1);
  }

  #stamp(prefix: string, model: string): AnswerStamp {
    return {
      id: `${prefix}-${this.#admitted.toString(16).padStart(16, "0")}`,
      model: model === "" ? this.#parts.ownModel : model,
      createdS: Math.floor(this.#parts.clock.wallMs() / 1000),
    };
  }

  #tell(): void {
    for (const listener of this.#listeners) listener(this.counts);
  }
}

/** One request under way. */
interface Answer {
  readonly startMs: number;
  firstMs: number;
  cachedTokens: number;
  begun: boolean;
  /** Output tokens sent so far. */
  sent: number;
  /** Its client has gone, or was cut off. */
  over: boolean;
  /** What the model knows it by. */
  id: number | null;
}

function sendHead(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
}
