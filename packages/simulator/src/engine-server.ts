import type { IncomingMessage, ServerResponse } from "node:http";
import { type Clock, type Profile, type Random, systemClock } from "@guidevane/core";
import { EMULATED_KINDS, type EmulatedKindName } from "./emulated-kinds/index.ts";
import type { EmulatedKind, EngineState } from "./emulated-kinds/kind.ts";
import { type Controls, readControls, UNTOUCHED } from "./emulator-controls.ts";
import { EngineAnswers } from "./engine-answers.ts";
import { EngineModel } from "./engine-model.ts";
import { EngineStats } from "./engine-stats.ts";
import { type ApiError, type Read, readEmbedding, readGeneration } from "./openai-answer.ts";
import { sendJson } from "./send-json.ts";

export interface EmulatedEngineOptions {
  readonly profile: Profile;
  /** Names it answers to; the first is its `model_name`. */
  readonly models: readonly string[];
  /** The engine whose health path, metrics and errors it has. Default `vllm`. */
  readonly kind?: EmulatedKindName | undefined;
  /** Work units/s of one replica. Default: the profile's. */
  readonly capacityWps?: number | undefined;
  /** Default 1. */
  readonly replicas?: number | undefined;
  /** KV memory of one replica, tokens. Default: twice what the streams of full load hold. */
  readonly kvTokens?: number | undefined;
  /** Default 0: a free port. */
  readonly port?: number | undefined;
  /** Default 127.0.0.1. */
  readonly host?: string | undefined;
  readonly clock?: Clock | undefined;
  /** With `random`: relative spread of the answers' decoding times. Default 0. */
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

/** What an emulated engine does with each request; sockets are the caller's. */
export class EngineServer {
  readonly model: EngineModel;
  readonly answers: EngineAnswers;
  readonly #options: EmulatedEngineOptions;
  readonly #kind: EmulatedKind;
  readonly #clock: Clock;
  readonly #stats = new EngineStats();
  #controls: Controls;

  constructor(options: EmulatedEngineOptions) {
    this.#options = options;
    this.#kind = EMULATED_KINDS[options.kind ?? "vllm"];
    this.#clock = options.clock ?? systemClock;
    this.model = new EngineModel({ ...options, clock: this.#clock });
    this.#controls = { ...UNTOUCHED, readyReplicas: options.replicas ?? 1 };
    this.answers = new EngineAnswers({
      model: this.model,
      stats: this.#stats,
      clock: this.#clock,
      ownModel: options.models[0] ?? "",
      usualTokens: Math.max(1, Math.round(options.profile.reference.outputTokens)),
      headAtOnce: this.#kind.headAtOnce,
      controls: () => this.#controls,
    });
  }

  control(change: Partial<Controls>): void {
    this.#controls = { ...this.#controls, ...change };
    this.model.readyReplicas = this.#controls.readyReplicas;
    this.model.slowdown = this.#controls.slowdown;
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
    const { healthPath, metricsPath, pages, notFound } = this.#kind;
    const method = request.method ?? "";
    const own = method === "GET" ? path : "";
    if (own === healthPath) this.#health(response);
    else if (own === metricsPath) this.#metrics(response);
    else if (own === "/v1/models") this.#models(response);
    else if (pages[own] !== undefined) sendJson(response, 200, pages[own](this.#state()));
    else if (path === "/emulator") this.#emulator(request, response, body);
    else if (method !== "POST") sendJson(response, 404, notFound);
    else if (path === "/v1/chat/completions") this.#generate(response, "chat", body);
    else if (path === "/v1/completions") this.#generate(response, "completion", body);
    else if (path === "/v1/embeddings") this.#embed(response, body);
    else sendJson(response, 404, notFound);
  }

  #generate(response: ServerResponse, kind: "chat" | "completion", body: string): void {
    const request = this.#accept(response, readGeneration(kind, body));
    if (request !== undefined) this.answers.generate(response, request);
  }

  #embed(response: ServerResponse, body: string): void {
    const request = this.#accept(response, readEmbedding(body));
    if (request !== undefined) this.answers.embed(response, request);
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
      if (model === "" || !this.#kind.checksModel || this.#options.models.includes(model)) return read.request;
      const message = `The model \`${model}\` does not exist.`;
      error = { status: 404, type: "NotFoundError", message, param: "model" };
    }
    const wait = retryAfterS !== null && error.status >= 429 ? { "retry-after": String(retryAfterS) } : {};
    const refusal = this.#kind.refusal(error);
    sendJson(response, refusal.status, refusal.json, wait);
    return undefined;
  }

  #health(response: ServerResponse): void {
    const { readyReplicas, health } = this.#controls;
    const status = readyReplicas === 0 ? 503 : health;
    const text = status === 200 ? this.#kind.healthy : "";
    response.writeHead(status, { "content-length": Buffer.byteLength(text) }).end(text);
  }

  #metrics(response: ServerResponse): void {
    const text = this.#kind.metrics(this.#state());
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
  }

  #state(): EngineState {
    const { model } = this;
    const { waiting } = model;
    const { kvBlocks, blockTokens } = model.parameters;
    return {
      model: this.#options.models[0] ?? "",
      // One that hangs has taken what it does not work on.
      running: this.answers.counts.inFlight - waiting,
      waiting,
      kvUsage: model.kvUsage,
      readyReplicas: this.#controls.readyReplicas,
      preemptions: model.preemptions,
      slots: model.slots,
      kvBlocks: kvBlocks * model.replicas,
      blockTokens,
      stats: this.#stats,
    };
  }

  #models(response: ServerResponse): void {
    const created = Math.floor(this.#clock.wallMs() / 1000);
    const data = this.#options.models.map((id) => ({ id, object: "model", created, owned_by: "guidevane-emulator" }));
    sendJson(response, 200, JSON.stringify({ object: "list", data }));
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
    const { capacityWps, running, waiting, kvUsage } = this.model;
    const now = { capacityWps, running, waiting, kvUsage };
    sendJson(response, 200, JSON.stringify({ ...this.#controls, ...now, ...this.answers.counts }));
  }
}

const LOOPBACK = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);
