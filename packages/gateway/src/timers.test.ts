import { type Clock, ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { chunked, jsonAnswer, LAST_CHUNK, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

async function start(timers: string, classes = "") {
  const clock = new ManualClock();
  const engine = await setup.engine();
  const gateway = await setup.before({ a: engine }, `gateway: { timers: { ${timers} } }\n${classes}`, {
    clock: clock satisfies Clock,
  });
  return { clock, engine, gateway, client: await setup.client(gateway) };
}

describe("a timer", () => {
  it("B026: of the head ends a plain attempt with 504, and it is not tried elsewhere", async () => {
    const { clock, engine, client } = await start("headMs: 1000");
    client.post(CHAT, PLAIN_BODY);
    const { closed } = await engine.next();
    clock.advance(1000);
    const got = await client.answer();
    expect(got.status).toBe(504);
    expect(JSON.parse(got.body.toString()).error.code).toBe("engine_timeout");
    await closed;
    expect(engine.requests.length).toBe(1);
  });

  it("of the first token ends a stream whose head alone has come with 504: nothing of it was passed on yet", async () => {
    const { clock, engine, client } = await start("firstTokenMs: 1000");
    client.post(CHAT, STREAM_BODY);
    const { socket, closed } = await engine.next();
    await new Promise((resolve) => socket.write(`${STREAM_HEAD}${chunked(": ping\n\n")}`, resolve));
    clock.advance(1000);
    const got = await client.answer();
    expect([got.status, JSON.parse(got.body.toString()).error.code]).toEqual([504, "engine_timeout"]);
    await closed;
    expect(engine.requests.length).toBe(1);
  });

  it("of the first token runs on past a head that was held for long enough", async () => {
    const { clock, engine, client, gateway } = await start("firstTokenMs: 1000, holdHeadMs: 400");
    client.post(CHAT, STREAM_BODY);
    const { socket, closed } = await engine.next();
    socket.write(STREAM_HEAD);
    await eventually(() => {
      clock.advance(1);
      return client.received.includes("text/event-stream");
    });
    clock.advance(1000);
    const got = await client.answer();
    expect(got.status).toBe(200);
    expect(got.body.toString()).toMatch(/^data: \{"error":\{.*"code":"engine_timeout"\}\}\n\n$/);
    await closed;
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="fault"}')).toBe(1);
  });

  it("of the first token is the class's own where it has one", async () => {
    const { clock, engine, client } = await start(
      "firstTokenMs: 1000",
      "classes: { slow: { model: m, timers: { firstTokenMs: 5000 } } }",
    );
    client.post(CHAT, STREAM_BODY);
    const { socket } = await engine.next();
    clock.advance(4999);
    socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: [DONE]\n\n"), Buffer.from(LAST_CHUNK)]));
    expect((await client.answer()).body.toString()).toBe("data: [DONE]\n\n");
  });

  it("B028: of silence ends a stream with an error event and no [DONE], after a whole line", async () => {
    const { clock, engine, client } = await start("idleMs: 1000, firstTokenMs: 500");
    client.post(CHAT, STREAM_BODY);
    const { socket } = await engine.next();
    socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: 1\n\n")]));
    await client.until("data: 1");
    clock.advance(999);
    socket.write(chunked("data: 2 is cut he"));
    await client.until("cut he");
    // The last bytes came 999 ms in: the silence is measured from them.
    clock.advance(999);
    socket.write(chunked("r"));
    await client.until("\r\nr\r\n");
    clock.advance(1000);
    const got = await client.answer();
    expect(got.body.toString()).toMatch(/^data: 1\n\ndata: 2 is cut her\n\ndata: \{"error":.*\}\n\n$/);
  });

  it("of silence cuts a plain answer", async () => {
    const { clock, engine, client } = await start("idleMs: 1000");
    client.post(CHAT, PLAIN_BODY);
    const { socket } = await engine.next();
    socket.write(jsonAnswer('{"ok":1}').slice(0, -2));
    await client.until('{"ok"');
    clock.advance(1000);
    await client.closed;
    expect(client.received.toString()).not.toContain("error");
  });

  it("of the whole ends an answer that goes on and on", async () => {
    const { clock, engine, client } = await start("totalMs: 3000");
    client.post(CHAT, STREAM_BODY);
    const { socket } = await engine.next();
    socket.write(STREAM_HEAD);
    for (let i = 0; i < 3; i++) {
      socket.write(chunked(`data: ${i}\n\n`));
      await client.until(`data: ${i}`);
      clock.advance(999);
    }
    clock.advance(3);
    expect((await client.answer()).body.toString()).toContain("engine_timeout");
  });
});
