import type { Fleet } from "@guidevane/core";
import type { Gateway } from "../gateway.ts";
import type { GatewayOptions } from "../gateway-options.ts";
import { fleetOf, startTestGateway } from "./fleet.ts";
import { RawClient } from "./raw-client.ts";
import { ScriptedEngine } from "./scripted-engine.ts";

export const CHAT = "/v1/chat/completions";
export const PLAIN_BODY = '{"model":"m","messages":[{"role":"user","content":"hé"}]}';
export const STREAM_BODY = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hé"}]}';

/** What one test file starts; each test's own things are stopped after it (`afterEach` is vitest's), the last one first. */
export function createSetup(afterEach: (task: () => Promise<void>) => void) {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  const setup = {
    cleanups,
    async engine(...args: Parameters<typeof ScriptedEngine.start>): Promise<ScriptedEngine> {
      const engine = await ScriptedEngine.start(...args);
      cleanups.push(() => engine.kill());
      return engine;
    },
    async gateway(fleet: Fleet, options: Partial<GatewayOptions> = {}): Promise<Gateway> {
      const gateway = await startTestGateway(fleet, options);
      cleanups.push(() => gateway.stop(0));
      return gateway;
    },
    /** A gateway before engines by id. */
    async before(
      engines: Readonly<Record<string, ScriptedEngine | string>>,
      extra = "",
      options: Partial<GatewayOptions> = {},
    ): Promise<Gateway> {
      const urls = Object.fromEntries(
        Object.entries(engines).map(([id, engine]) => [id, typeof engine === "string" ? engine : engine.url]),
      );
      return setup.gateway(await fleetOf(urls, extra), options);
    },
    async client(gateway: Gateway): Promise<RawClient> {
      const client = await RawClient.connect(gateway.url);
      cleanups.push(() => client.close());
      return client;
    },
  };
  return setup;
}

/** Resolves with the metric's value by `GET /metrics`; 0 where it is not there. `series` as it is printed. */
export async function metric(gateway: Gateway, series: string): Promise<number> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

/** Asks again and again, a turn of the event loop apart, until the answer is yes. The test's own time-out ends it. */
export async function eventually(ask: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setImmediate(resolve));
}
