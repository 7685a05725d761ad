import type { Decision } from "../decision.ts";
import type { Gateway } from "../gateway.ts";
import type { GatewayOptions } from "../gateway-options.ts";
import { fleetOf } from "./fleet.ts";
import type { RawAnswer, RawClient } from "./raw-client.ts";
import {
  chunked,
  type EngineRequestSeen,
  jsonAnswer,
  LAST_CHUNK,
  type ScriptedEngine,
  STREAM_HEAD,
} from "./scripted-engine.ts";
import { CHAT, type createSetup, eventually } from "./setup.ts";
import { snapshotOf } from "./snapshot.ts";

export type Script = (request: EngineRequestSeen) => void;

/** One event of a chat stream with this content. */
export const D = (content: string): string =>
  `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},"finish_reason":null}]}\n\n`;
export const FIN =
  'data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
export const U =
  'data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}\n\n';
export const DONE = "data: [DONE]\n\n";
export const NORMAL = `${D("one")}${D("two")}${FIN}${U}${DONE}`;

/** A whole answer: the head of an event stream, these bytes as one chunk, the last chunk. */
export function streamOf(body: string | Buffer): Buffer {
  return Buffer.concat([Buffer.from(STREAM_HEAD), chunked(body), Buffer.from(LAST_CHUNK)]);
}

/** The beginning of such an answer: no last chunk. */
export function begun(body: string): Buffer {
  return Buffer.concat([Buffer.from(STREAM_HEAD), chunked(body)]);
}

export const answersWell: Script = ({ socket, body }) => {
  socket.write(body.includes('"stream":true') ? streamOf(NORMAL) : jsonAnswer('{"ok":1}'));
};

/** The default request, made the test's own by more fields. */
export function chat(more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }], ...more });
}

/** A gateway before scripted engines whose scripts can be changed, and what must hold after every fault. */
export interface FaultBench {
  readonly gateway: Gateway;
  readonly engines: Readonly<Record<string, ScriptedEngine>>;
  /** From now on this engine does so. */
  script(engine: string, script: Script): void;
  client(): Promise<RawClient>;
  /** One request over a connection of its own. */
  ask(body?: string | Buffer, headers?: Readonly<Record<string, string>>, path?: string): Promise<RawAnswer>;
  decision(id: string): Promise<Decision>;
  /** The decision of a request, once it is over. */
  ended(id: string): Promise<Decision>;
  /** Nothing runs or waits any more, by both ways to see it; then, with engines that work again, a request is served. */
  recovers(): Promise<void>;
}

export interface FaultBenchOptions {
  /** YAML of further top-level keys. */
  readonly extra?: string;
  readonly engineKeys?: string;
  readonly gateway?: Partial<GatewayOptions>;
  /** Left out: the first engine is home to all. */
  readonly weights?: Readonly<Record<string, number>>;
}

export async function faultBench(
  setup: ReturnType<typeof createSetup>,
  scripts: Readonly<Record<string, Script>>,
  { extra = "", engineKeys = "", gateway: options = {}, weights }: FaultBenchOptions = {},
): Promise<FaultBench> {
  const now = new Map(Object.entries(scripts));
  const engines: Record<string, ScriptedEngine> = {};
  for (const id of Object.keys(scripts)) engines[id] = await setup.engine((request) => now.get(id)!(request));
  const urls = Object.fromEntries(Object.entries(engines).map(([id, { url }]) => [id, url]));
  const fleet = await fleetOf(urls, extra, engineKeys);
  const gateway = await setup.gateway(fleet, options);
  const [first] = Object.keys(scripts);
  await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, weights ?? { [first!]: 1 })));
  const bench: FaultBench = {
    gateway,
    engines,
    script: (engine, script) => void now.set(engine, script),
    client: () => setup.client(gateway),
    async ask(body = chat(), headers = {}, path = CHAT) {
      const client = await bench.client();
      client.post(path, body, headers);
      const answer = await client.answer();
      client.close();
      return answer;
    },
    async decision(id) {
      return (await (await fetch(`${gateway.adminUrl}/v1/decisions/${id}`)).json()) as Decision;
    },
    async ended(id) {
      let found: Decision | undefined;
      await eventually(async () => {
        found = await bench.decision(id);
        return found.outcome !== null && found.outcome !== undefined;
      });
      return found!;
    },
    async recovers() {
      await eventually(async () => (await open(gateway)) === 0);
      for (const id of now.keys()) now.set(id, answersWell);
      const { status, body } = await bench.ask();
      if (status !== 200) throw new Error(`the next request was answered ${status}: ${body}`);
      await eventually(async () => (await open(gateway)) === 0);
    },
  };
  return bench;
}

/** Requests that run at engines or wait for one, by the engines' list and by the metrics. */
async function open(gateway: Gateway): Promise<number> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { inFlight: number }[];
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const gauges = [...metrics.matchAll(/^guidevane_(?:in_flight|queue_depth)\{.*\} (\S+)$/gm)];
  if (gauges.length === 0) throw new Error("no gauge of requests in flight");
  return [...engines.map(({ inFlight }) => inFlight), ...gauges.map(([, value]) => Number(value))].reduce(
    (sum, each) => sum + each,
    0,
  );
}
