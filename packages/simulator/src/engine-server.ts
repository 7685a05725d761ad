import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, type Profile, type Random, systemClock } from "@guidevane/core";
import { emulatedWords } from "./answer-text.ts";
import { type Controls, readControls, UNTOUCHED } from "./emulator-controls.ts";
import { EngineModel } from "./engine-model.ts";
import {
  type AnswerStamp,
  type ApiError,
  closingEvents,
  type EmbeddingRequest,
  embeddingAnswer,
  errorAnswer,
  type FinishReason,
  type GenerationRequest,
  openingEvent,
  type Read,
  readEmbedding,
  readGeneration,
  tokenEvent,
  wholeAnswer,
} from "./openai-answer.ts";
import { RunningAnswer } from "./running-answer.ts";
import { VllmMetrics } from "./vllm-metrics.ts";

export interface EmulatedEngineOptions {
  readonly profile: Profile;
  /** Names it answers to; the first is its `model_name`. */
  readonly models: readonly string[];
  /** Work units/s of one replica. Default: the profile's. */
  readonly capacityWps?: number | undefined;
  /** Default 1. */
  readonly replicas?: number | undefined;
  /** Default 0: a free port. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  readonly clock?: Clock | undefined;
  /** With `random`: relative spread of each request's times. Default 0. */
  readonly jitter?: number | undefined;
  readonly random?: Random | undefined;
  /** Called with each request as it came, before it is answered. */
  readonly onRequest?: ((received: ReceivedRequest) => void) | undefined;
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** Counts since it started. `aborted`: the client went before the answer's end. */
export interface EmulatedEngineCounts {
  readonly admitted: number;
  readonly finished: number;
  readonly aborted: number;
  readonly inFlight: number;
}

/** What an emulated engine does with each request; sockets are the caller's. */
export class EngineServer {
  readonly model: EngineModel;
  readonly #options: EmulatedEngineOptions;
  readonly #clock: Clock;
  readonly #metrics = new VllmMetrics();
  readonly #live = new Set<RunningAnswer>();
  readonly #listeners = new Set<(counts: EmulatedEngineCounts) => void>();
  #controls: Controls;
  #admitted = 0;
  #finished = 0;
  #aborted = 0;

  constructor(options: EmulatedEngineOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.model = new EngineModel({ ...options, clock: this.#clock });
    this.#controls = { ...UNTOUCHED, readyReplicas: options.replicas ?? 1 };
  }

  get counts(): EmulatedEngineCounts {
    return {
      admitted: this.#admitted,
      finished: this.#finished,
      aborted: this.#aborted,
      inFlight: this.#live.size,
    };
  }

  control(change: Partial<Controls>): void {
    this.#controls = { ...this.#controls, ...change };
    this.model.readyReplicas = this.#controls.readyReplicas;
    this.model.slowdown = this.#controls.slowdown;
  }

  watch(listener: (counts: EmulatedEngineCounts) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    for (const answer of this.#live) answer.cancel();
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    // A client that goes while it still sends has asked for nothing yet.
    request.on("error", () => response.destroy());
    request.on("end", () => {
      const body = Buffer.concat(chunks);
      const path = (request.url ?? "/").split("?")[0]!;
      this.#options.onRequest?.({ method: request.method ?? "", path, headers: request.headers, body });
      this.#route(request, response, path, body.toString());
    });
  }

  #route(request: IncomingMessage, response: ServerResponse, path: string, body: string): void {
    const method = request.method ?? "";
    const route = path === "/emulator" ? path : `${method} ${path}`;
    if (route === "GET /health") this.#health(response);
    else if (route === "GET /metrics") this.#sendMetrics(response);
    else if (route === "GET /v1/models") this.#models(response);
    else if (route === "POST /v1/chat/completions") this.#generate(response, readGeneration("chat", body));
    else if (route === "POST /v1/completions") this.#generate(response, readGeneration("completion", body));
    else if (route === "POST /v1/embeddings") this.#embed(response, readEmbedding(body));
    else if (route === "/emulator") this.#emulator(request, response, body);
    else sendJson(response, 404, JSON.stringify({ detail: "Not Found" }));
  }

  #health(response: ServerResponse): void {
    const status = this.#controls.readyReplicas === 0 ? 503 : this.#controls.health;
    response.writeHead(status, { "content-length": 0 }).end();
  }

  #sendMetrics(response: ServerResponse): void {
    const live = [...this.#live];
    const nowMs = this.#clock.nowMs();
    const waiting = live.filter((answer) => answer.isWaiting(nowMs)).length;
    const held = live.reduce((tokens, answer) => tokens + answer.heldTokens, 0);
    const text = this.#metrics.text(this.#options.models[0] ?? "", {
      running: live.length - waiting,
      waiting,
      kvUsage: Math.min(1, held / this.#cacheTokens()),
      readyReplicas: this.#controls.readyReplicas,
    });
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
  }

  /** Room for the streams that full load holds (rate × residence), and a quarter more. */
  #cacheTokens(): number {
    const { profile, replicas = 1 } = this.#options;
    const { promptTokens, outputTokens } = profile.reference;
    const residenceMs = profile.ttftMs.at(-1)![1] + outputTokens * profile.tbotMs.at(-1)![1];
    const capacityWps = this.#options.capacityWps ?? profile.capacityWps;
    return Math.max(1, 1.25 * replicas * capacityWps * (residenceMs / 1000) * (promptTokens + outputTokens));
  }

  #emulator(request: IncomingMessage, response: ServerResponse, body: string): void {
    const refuse = (status: number, detail: string) => sendJson(response, status, JSON.stringify({ detail }));
    if (!LOOPBACK.has(request.socket.remoteAddress ?? "")) {
      refuse(403, "only from the same machine");
      return;
    }
    if (request.method !== "GET") {
      const change = request.method === "POST" ? readControls(body) : "GET or POST";
      if (typeof change === "string") {
        refuse(request.method === "POST" ? 400 : 405, change);
        return;
      }
      this.control(change);
    }
    const { capacityWps, backlog } = this.model;
    const utilisation = capacityWps > 0 ? this.model.utilisation() : null;
    sendJson(response, 200, JSON.stringify({ ...this.#controls, capacityWps, utilisation, backlog, ...this.counts }));
  }

  #models(response: ServerResponse): void {
    const created = Math.floor(this.#clock.wallMs() / 1000);
    const data = this.#options.models.map((id) => ({ id, object: "model", created, owned_by: "guidevane-emulator" }));
    sendJson(response, 200, JSON.stringify({ object: "list", data }));
  }

  /** The request, or undefined after it was refused. */
  #accept<Request extends { readonly model: string }>(
    response: ServerResponse,
    read: Read<Request>,
  ): Request | undefined {
    const { answerStatus, readyReplicas, retryAfterS } = this.#controls;
    const status = readyReplicas === 0 ? 503 : answerStatus;
    let error: ApiError;
    if (status !== 200) {
      error = { status, type: "Service Unavailable", message: "The engine cannot accept new requests.", param: null };
    } else if ("error" in read) {
      error = read.error;
    } else {
      const { model } = read.request;
      if (model === "" || this.#options.models.includes(model)) return read.request;
      const message = `The model \`${model}\` does not exist.`;
      error = { status: 404, type: "NotFoundError", message, param: "model" };
    }
    const wait = retryAfterS !== null && error.status >= 429 ? { "retry-after": String(retryAfterS) } : {};
    sendJson(response, error.status, errorAnswer(error), wait);
    return undefined;
  }

  #generate(response: ServerResponse, read: Read<GenerationRequest>): void {
    const request = this.#accept(response, read);
    if (request === undefined) return;
    const natural = this.#options.profile.reference.outputTokens;
    const tokens = request.maxTokens ?? Math.max(1, Math.round(natural));
    const finish: FinishReason = request.maxTokens === null ? "stop" : "length";
    const words = emulatedWords(request.prompt, tokens);
    const stamp = this.#stamp(request.kind === "chat" ? "chatcmpl" : "cmpl", request.model);
    const answer = this.#begin(response, request.promptTokens, tokens);
    const { ttftMs, tbotMs, totalMs } = answer.admission;
    if (request.stream) {
      this.#stream(response, request, stamp, words, finish, answer);
      return;
    }
    answer.at(ttftMs, () => this.#metrics.ttftSeconds.record(ttftMs / 1000));
    answer.at(totalMs, () => {
      this.#metrics.generationTokens += tokens;
      this.#recordEnd(finish, tokens, tbotMs);
      sendJson(response, 200, wholeAnswer(request, stamp, words, finish));
    });
  }

  #stream(
    response: ServerResponse,
    request: GenerationRequest,
    stamp: AnswerStamp,
    words: readonly string[],
    finish: FinishReason,
    answer: RunningAnswer,
  ): void {
    const { ttftMs, tbotMs, totalMs } = answer.admission;
    // vLLM sends its 200 at once, before it knows whether there will be an answer.
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    response.flushHeaders();
    const sendDue = () => {
      const first = answer.tokens;
      // What fell due in one turn of the loop is written once.
      const due = Math.min(words.length, answer.tokensDue(this.#clock.nowMs()));
      let text = "";
      if (first === 0 && due > 0) {
        this.#metrics.ttftSeconds.record(ttftMs / 1000);
        text = openingEvent(request, stamp);
      }
      for (let i = first; i < due; i++) text += tokenEvent(request, stamp, words[i]!);
      answer.tokens = due;
      this.#metrics.generationTokens += due - first;
      if (text !== "") response.write(text);
      const { breakAfterTokens } = this.#controls;
      if (breakAfterTokens !== null && due >= breakAfterTokens) response.destroy();
      else if (due < words.length) answer.at(ttftMs + due * tbotMs, sendDue);
      else answer.at(totalMs, end);
    };
    const end = () => {
      this.#recordEnd(finish, words.length, tbotMs);
      response.end(closingEvents(request, stamp, finish, words.length));
    };
    answer.at(ttftMs, sendDue);
  }

  #recordEnd(finish: FinishReason, tokens: number, tbotMs: number): void {
    this.#metrics.finished[finish] += 1;
    for (let i = 1; i < tokens; i++) this.#metrics.tokenSeconds.record(tbotMs / 1000);
  }

  #embed(response: ServerResponse, read: Read<EmbeddingRequest>): void {
    const request = this.#accept(response, read);
    if (request === undefined) return;
    const answer = this.#begin(response, request.promptTokens, 0);
    answer.at(answer.admission.totalMs, () => {
      this.#metrics.finished.stop += 1;
      sendJson(response, 200, embeddingAnswer(request, this.#stamp("embd", request.model)));
    });
  }

  /** Admits a request; its answer ends with the response, well or not. */
  #begin(response: ServerResponse, promptTokens: number, outputTokens: number): RunningAnswer {
    const admission = this.model.admit({ promptTokens, outputTokens });
    const answer = new RunningAnswer(this.#clock, admission, promptTokens, this.#controls.hang);
    this.#live.add(answer);
    this.#admitted += 1;
    this.#metrics.promptTokens += promptTokens;
    response.once("close", () => {
      answer.cancel();
      this.#live.delete(answer);
      if (response.writableFinished) {
        this.#finished += 1;
        this.#metrics.requestSeconds.record(answer.elapsedMs(this.#clock.nowMs()) / 1000);
      } else {
        this.#aborted += 1;
        this.#metrics.finished.abort += 1;
        this.model.release(admission, answer.undone(this.#clock.nowMs()));
      }
      this.#tell();
    });
    this.#tell();
    return answer;
  }

  #stamp(prefix: string, model: string): AnswerStamp {
    return {
      id: `${prefix}-${this.#admitted.toString(16).padStart(16, "0")}`,
      model: model === "" ? (this.#options.models[0] ?? "") : model,
      createdS: Math.floor(this.#clock.wallMs() / 1000),
    };
  }

  #tell(): void {
    for (const listener of this.#listeners) listener(this.counts);
  }
}

const LOOPBACK = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);

function sendJson(response: ServerResponse, status: number, json: string, headers: Record<string, string> = {}): void {
  const length = Buffer.byteLength(json);
  response.writeHead(status, { "content-type": "application/json", "content-length": length, ...headers }).end(json);
}
