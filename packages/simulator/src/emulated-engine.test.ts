import { once } from "node:events";
import { request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { chat, get, killStarted, openStream, post, slow, start, untilCounts } from "./emulated-engine.fixture.ts";

afterEach(killStarted);

describe("a client that goes", () => {
  it.each([false, true])("frees its place at once (stream: %s)", async (stream) => {
    const engine = await start({ profile: slow });
    const sent = request(`${engine.url}/v1/chat/completions`, { method: "POST" });
    sent.on("error", () => sent.destroy());
    sent.end(JSON.stringify({ ...chat, stream }));
    await untilCounts(engine, ({ inFlight }) => inFlight === 1);
    expect(engine.model.running).toBe(1);
    sent.destroy();
    await untilCounts(engine, ({ inFlight }) => inFlight === 0);
    expect(engine.counts).toMatchObject({ admitted: 1, finished: 0, aborted: 1 });
    expect(engine.model.running).toBe(0);
    expect(engine.model.kvUsage).toBe(0);
    expect((await get(engine, "/metrics")).text).toContain(
      'request_success_total{finished_reason="abort",engine="0",model_name="tiny"} 1',
    );
  });
});

describe("what a test can make it do", () => {
  it("is unhealthy on demand", async () => {
    const engine = await start();
    expect((await get(engine, "/health")).status).toBe(200);
    engine.control({ health: 500 });
    expect((await get(engine, "/health")).status).toBe(500);
  });

  it("serves nothing without ready replicas", async () => {
    const engine = await start();
    const { status } = await post(engine, "/emulator", { readyReplicas: 0 });
    expect(status).toBe(200);
    expect((await get(engine, "/health")).status).toBe(503);
    expect((await post(engine, "/v1/chat/completions", chat)).status).toBe(503);
    expect((await get(engine, "/metrics")).text).toContain(
      'guidevane_emulator_ready_replicas{engine="0",model_name="tiny"} 0',
    );
  });

  it("refuses with a status and Retry-After", async () => {
    const engine = await start();
    engine.control({ answerStatus: 429, retryAfterS: 7 });
    const answer = await post(engine, "/v1/chat/completions", chat);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "7"]);
  });

  it("cuts streams after so many tokens", async () => {
    const engine = await start();
    engine.control({ breakAfterTokens: 2 });
    const { response } = await openStream(engine);
    let text = "";
    response.on("data", (chunk) => {
      text += chunk;
    });
    const [error] = await once(response, "error");
    expect((error as NodeJS.ErrnoException).code).toBe("ECONNRESET");
    expect(text).not.toContain("[DONE]");
  });

  it("takes requests and never answers while it hangs", async () => {
    const engine = await start();
    engine.control({ hang: true });
    const { sent } = await openStream(engine);
    expect(engine.counts.inFlight).toBe(1);
    sent.destroy();
    await untilCounts(engine, ({ aborted }) => aborted === 1);
  });

  it("refuses a control that it does not know", async () => {
    const engine = await start();
    const { status, text } = await post(engine, "/emulator", { helth: 200 });
    expect(status).toBe(400);
    expect(text).toContain("helth");
  });

  it("is gone at once when killed: open streams break, the port refuses", async () => {
    const engine = await start({ profile: slow });
    const { response } = await openStream(engine);
    const broken = once(response, "error");
    await engine.kill();
    expect(((await broken)[0] as NodeJS.ErrnoException).code).toBe("ECONNRESET");
    await expect(get(engine, "/health")).rejects.toThrow("fetch failed");
  });

  it("tells of each request as it came", async () => {
    const seen: string[] = [];
    const engine = await start({
      onRequest: ({ method, path, body }) => seen.push(`${method} ${path} ${body.length}`),
    });
    await post(engine, "/v1/nothing", "12345");
    expect(seen).toEqual(["POST /v1/nothing 5"]);
  });
});
