import { IncomingMessage, ServerResponse } from "node:http";
import { connect, type OnReadOpts, Socket } from "node:net";
import { ManualClock, systemClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { Attempt } from "./attempt.ts";
import type { AttemptResult } from "./attempt-result.ts";
import type { EngineCall, EngineClient, EngineEvents, EngineFailure } from "./engine-client.ts";
import { PlainEngineClient } from "./plain-engine-client.ts";
import { chunked, jsonAnswer, LAST_CHUNK } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, metric, PLAIN_BODY } from "./testing/setup.ts";
import { UndiciEngineClient } from "./undici-client.ts";

const setup = createSetup(afterEach);

const NOTHING: EngineCall = { pause() {}, resume() {}, abort() {} };
const REQUEST = { method: "POST", path: CHAT, headers: [], body: null, fresh: false } as const;

/** Fails to connect, as a process does that may open no more files. */
function failingSocket(code: string): Socket {
  const socket = new Socket();
  queueMicrotask(() => socket.destroy(Object.assign(new Error(`connect ${code}`), { code })));
  return socket;
}

type ClientOptions = ConstructorParameters<typeof PlainEngineClient>[0];

describe.each([
  ["plain", (options: ClientOptions): EngineClient => new PlainEngineClient(options)],
  [
    "undici's",
    (options: ClientOptions): EngineClient =>
      new UndiciEngineClient({ ...options, connect: () => options.connect!({ port: 9 }), tls: null }),
  ],
] as const)("a connection that the gateway can't open (%s client)", (_name, create) => {
  it.each([
    ["EMFILE", "no-descriptors"],
    ["ENFILE", "no-descriptors"],
    ["EADDRNOTAVAIL", "no-descriptors"],
    ["ECONNREFUSED", "refused"],
    ["EHOSTUNREACH", "unreachable"],
    ["ENOTFOUND", "unreachable"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "tls"],
  ])("for %s is told as %s", async (code, kind) => {
    const options = {
      origin: "http://127.0.0.1:9",
      connectMs: 1000,
      clock: systemClock,
      connect: () => failingSocket(code),
    };
    const client = create(options);
    const failure = await new Promise<EngineFailure>((resolve) => {
      const events: Partial<EngineEvents> = { onFail: resolve };
      client.send(REQUEST, events as EngineEvents);
    });
    expect(failure.kind).toBe(kind);
    client.close();
  });

  it("B071: after connectMs is told as unreachable", async () => {
    const clock = new ManualClock();
    const socket = new Socket();
    const client = create({ origin: "http://127.0.0.1:9", connectMs: 1000, clock, connect: () => socket });
    const failure = new Promise<EngineFailure>((resolve) => {
      client.send(REQUEST, { onFail: resolve } as Partial<EngineEvents> as EngineEvents);
    });
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1000);
    expect((await failure).kind).toBe("unreachable");
    expect(socket.destroyed).toBe(true);
    client.close();
  });
});

describe("bytes of an engine before a request is sent", () => {
  it("are not its answer: the connection is stale", async () => {
    const engine = await setup.engine(({ socket }) => socket.write(jsonAnswer("{}")));
    let onread: OnReadOpts | undefined;
    const client = new PlainEngineClient({
      origin: engine.url,
      connectMs: 1000,
      clock: systemClock,
      connect(at) {
        onread = at.onread;
        return connect(at);
      },
    });
    setup.cleanups.push(() => client.close());
    const nothing = () => {};
    const events = { onSent: nothing, onHead: nothing, onData: nothing, onEnd: nothing, onFail: nothing };
    await new Promise<void>((onEnd) => client.send(REQUEST, { ...events, onEnd }));
    const failure = new Promise<EngineFailure>((onFail) => {
      const onHead = () => expect.unreachable("nothing was asked");
      client.send(REQUEST, { ...events, onHead, onFail });
    });
    // They are read in the turn in which the request came, at whose end it would be written.
    const { buffer, callback } = onread!;
    callback((buffer as Buffer).write(jsonAnswer('{"whose":"?"}')), buffer as Buffer);
    expect((await failure).kind).toBe("stale-connection");
    expect(engine.requests).toHaveLength(1);
  });
});

describe("an attempt", () => {
  it("that fails for want of descriptors is nobody's fault but the gateway's: no retry, 503, an attempt that was rejected", async () => {
    const client: EngineClient = {
      send(_request, events) {
        events.onFail({ kind: "no-descriptors", message: "connect EMFILE" });
        return NOTHING;
      },
      close() {},
    };
    const socket = new Socket();
    const { promise: result, resolve: onOver } = Promise.withResolvers<AttemptResult>();
    const running = new Attempt({
      ...{
        client,
        engineRequest: () => REQUEST,
        onOver,
        whenGone() {},
        socket,
        response: new ServerResponse(new IncomingMessage(socket)),
        clock: systemClock,
      },
      timers: { headMs: 1000, holdHeadMs: 1000, firstTokenMs: 1000, idleMs: 1000, totalMs: 0 },
      ...{ deadlineAtMs: null, stream: false, choices: 1, servesModel: true, answerHeaders: [] },
      breakOff: () => "",
      decide: () => expect.unreachable("nothing to decide: another engine would not help"),
      onCommit: () => expect.unreachable("there is no answer"),
      ...{ onFirstToken() {}, onResponseId() {}, onObserverFailure() {} },
    });
    running.start();
    expect(await result).toMatchObject({
      kind: "failed",
      error: { status: 503, code: "gateway_overloaded", headers: { "retry-after": "1" } },
      report: { outcome: "rejected", status: null, failure: { kind: "no-descriptors" } },
    });
  });
});

describe("an answer in a transfer coding that was not asked for", () => {
  it.each(["gzip, chunked", "xchunked", "identity, chunked"])(
    "%s is no answer, and is not repeated",
    async (coding) => {
      const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: ${coding}\r\n\r\n`;
      const script = ({ socket }: { socket: Socket }): void => {
        socket.write(`${head}${chunked('{"ok":1}')}${LAST_CHUNK}`);
      };
      const [a, b] = [await setup.engine(script), await setup.engine(script)];
      const gateway = await setup.before({ a, b });
      const client = await setup.client(gateway);
      client.post(CHAT, PLAIN_BODY);
      const got = await client.answer();
      expect([got.status, JSON.parse(got.body.toString()).error.code]).toEqual([502, "engine_unreachable"]);
      expect(a.requests.length + b.requests.length).toBe(1);
      expect(await metric(gateway, 'guidevane_requests_total{class="m",outcome="fault"}')).toBe(1);
    },
  );
});
