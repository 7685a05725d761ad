import { seededRandom } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "./gateway.ts";
import { fleetOf, startTestGateway } from "./testing/fleet.ts";
import { headerIn, RawClient } from "./testing/raw-client.ts";
import { chunked, jsonAnswer, LAST_CHUNK, ScriptedEngine, STREAM_HEAD } from "./testing/scripted-engine.ts";

const CHAT = "/v1/chat/completions";
const STREAM_BODY = '{"model":"m","stream":true,"messages":[{"role":"user","content":"hé"}]}';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function withEngine(
  script: Parameters<typeof ScriptedEngine.start>[0],
  extra = "",
): Promise<[ScriptedEngine, Gateway]> {
  const engine = await ScriptedEngine.start(script);
  const gateway = await startTestGateway(await fleetOf({ a: engine.url }, extra));
  cleanups.push(
    () => engine.kill(),
    () => gateway.stop(0),
  );
  return [engine, gateway];
}

async function client(gateway: Gateway): Promise<RawClient> {
  const raw = await RawClient.connect(gateway.url);
  cleanups.push(() => raw.close());
  return raw;
}

describe("forwarding", () => {
  it("passes a body and its answer on byte for byte", async () => {
    const answer = '{ "id":1,\n "odd" : "\\u00e9" }';
    const [engine, gateway] = await withEngine(({ socket }) => socket.write(jsonAnswer(answer)));
    const raw = await client(gateway);
    const odd = `  {"model" : "m", "x":1e999999, "messages":[ ] , "n":0.10}\n`;
    raw.post(CHAT, odd);
    const got = await raw.answer();
    expect(got.status).toBe(200);
    expect(got.body.toString()).toBe(answer);
    expect(engine.requests[0]?.body.toString()).toBe(odd);
    expect(engine.requests[0]?.requestLine).toBe(`POST ${CHAT} HTTP/1.1`);
  });

  it("passes a stream on byte for byte, wherever its chunks are cut", async () => {
    const random = seededRandom(7);
    const events = Array.from({ length: 60 }, (_, i) => `data: {"i":${i},"text":"é🦊 ${"x".repeat(i * 7)}"}\n\n`);
    const whole = Buffer.from(`${events.join("")}data: [DONE]\n\n`);
    const wire: Buffer[] = [];
    for (let at = 0; at < whole.length; ) {
      const size = 1 + Math.floor(random() * 200);
      wire.push(chunked(whole.subarray(at, at + size)));
      at += size;
    }
    const bytes = Buffer.concat([Buffer.from(STREAM_HEAD), ...wire, Buffer.from(LAST_CHUNK)]);
    const [, gateway] = await withEngine(({ socket }) => {
      let at = 0;
      const next = (): void => {
        const size = 1 + Math.floor(random() * 300);
        socket.write(bytes.subarray(at, at + size));
        at += size;
        if (at < bytes.length) setImmediate(next);
      };
      next();
    });
    const raw = await client(gateway);
    raw.post(CHAT, STREAM_BODY);
    const got = await raw.answer();
    expect(got.body.equals(whole)).toBe(true);
    expect(headerIn(got, "content-type")).toBe("text/event-stream; charset=utf-8");
    expect(headerIn(got, "x-guidevane-engine")).toBe("a");
    expect(headerIn(got, "x-guidevane-reason")).toBe("bootstrap");
    expect(headerIn(got, "x-guidevane-snapshot")).toBe("0");
    expect(headerIn(got, "x-guidevane-key-source")).toBe("prompt");
  });
});
