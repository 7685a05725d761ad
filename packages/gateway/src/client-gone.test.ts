import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { chunked, STREAM_HEAD } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, STREAM_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

/** How soon an engine must see that the client has left. */
const LIMIT_MS = 1000;

async function closesInTime(fromMs: number, closed: Promise<void>): Promise<void> {
  await closed;
  expect(performance.now() - fromMs).toBeLessThan(LIMIT_MS);
}

describe("a client that leaves", () => {
  it("B021: closes the engine's connection while its head is awaited", async () => {
    const engine = await setup.engine();
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, STREAM_BODY);
    const { closed } = await engine.next();
    const fromMs = performance.now();
    client.close();
    await closesInTime(fromMs, closed);
    await eventually(
      async () => (await metric(gateway, 'guidevane_requests_total{class="m",outcome="cancelled"}')) === 1,
    );
    expect(await metric(gateway, 'guidevane_attempts_total{engine="a",outcome="cancelled"}')).toBe(1);
  });

  it("B021: closes it in prefill, after the head and before the first bytes", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(STREAM_HEAD));
    // The head is held back for so long.
    const client = await setup.client(await setup.before({ a: engine }, "gateway: { timers: { holdHeadMs: 100 } }"));
    client.post(CHAT, STREAM_BODY);
    const { closed } = await engine.next();
    await client.until("text/event-stream");
    const fromMs = performance.now();
    client.close();
    await closesInTime(fromMs, closed);
  });

  it("closes it in the middle of a stream", async () => {
    const engine = await setup.engine(({ socket }) =>
      socket.write(Buffer.concat([Buffer.from(STREAM_HEAD), chunked("data: 1\n\n")])),
    );
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(CHAT, STREAM_BODY);
    const { closed } = await engine.next();
    await client.until("data: 1");
    const fromMs = performance.now();
    client.close();
    await closesInTime(fromMs, closed);
  });

  it("closes all that it had asked for in a pipeline", async () => {
    const engine = await setup.engine();
    const client = await setup.client(await setup.before({ a: engine }));
    client.post(CHAT, STREAM_BODY);
    const first = await engine.next();
    client.post(CHAT, STREAM_BODY);
    const second = await engine.next();
    const fromMs = performance.now();
    client.close();
    await closesInTime(fromMs, first.closed);
    await closesInTime(fromMs, second.closed);
  });

  it("closes it while the stream is held back because the client reads too slowly", async () => {
    const engine = await setup.engine();
    const client = await setup.client(await setup.before({ a: engine }));
    client.socket.pause();
    client.post(CHAT, STREAM_BODY);
    const { socket, closed } = await engine.next();
    socket.write(STREAM_HEAD);
    const piece = chunked(Buffer.alloc(65_536, "x"));
    while (socket.write(piece)) await new Promise((resolve) => setImmediate(resolve));
    const fromMs = performance.now();
    client.close();
    await closesInTime(fromMs, closed);
  });

  it("B025: is taken to have left when it reads nothing for a minute, and not before", async () => {
    const clock = new ManualClock();
    const engine = await setup.engine();
    const gateway = await setup.before({ a: engine }, "", { clock });
    const client = await setup.client(gateway);
    client.socket.pause();
    client.post(CHAT, STREAM_BODY);
    const { socket, closed } = await engine.next();
    socket.write(STREAM_HEAD);
    const piece = chunked(Buffer.alloc(65_536, "x"));
    let fullTurns = 0;
    while (fullTurns < 2000) {
      fullTurns = socket.writableNeedDrain ? fullTurns + 1 : 0;
      if (fullTurns === 0) socket.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    clock.advance(59_000);
    expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(1);
    clock.advance(2000);
    await closed;
    await eventually(
      async () => (await metric(gateway, 'guidevane_requests_total{class="m",outcome="cancelled"}')) === 1,
    );
  });

  it("gives up a connection that is not there yet", async () => {
    // A port that takes connections and never shakes hands: to the gateway it is still connecting.
    const silent = createServer();
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    setup.cleanups.push(() => silent.close());
    const gateway = await setup.before(
      { a: `https://127.0.0.1:${(silent.address() as AddressInfo).port}` },
      "gateway: { timers: { connectMs: 60000 } }",
      { probe: () => Promise.resolve({ kind: "connected" }) },
    );
    const client = await setup.client(gateway);
    const connected = once(silent, "connection") as Promise<[Socket]>;
    client.post(CHAT, STREAM_BODY);
    const [socket] = await connected;
    // The handshake's first bytes are thrown away: an unread socket would not tell of its end.
    socket.on("error", () => socket.destroy()).resume();
    const fromMs = performance.now();
    client.close();
    await closesInTime(
      fromMs,
      once(socket, "close").then(() => undefined),
    );
    await eventually(
      async () => (await metric(gateway, 'guidevane_requests_total{class="m",outcome="cancelled"}')) === 1,
    );
  });
});
