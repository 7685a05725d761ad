import { afterEach, describe, expect, it } from "vitest";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn } from "./testing/raw-client.ts";
import { type EngineRequestSeen, jsonAnswer } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, PLAIN_BODY } from "./testing/setup.ts";

const setup = createSetup(afterEach);

const good = ({ socket }: EngineRequestSeen): void => {
  socket.write(jsonAnswer('{"ok":1}'));
};

describe("headers", () => {
  it("B178: go to the engine in order, without those of the connection, the gateway and the client's credentials", async () => {
    const engine = await setup.engine(good);
    const client = await setup.client(await setup.before({ a: engine }));
    client.send(
      [
        `POST ${CHAT}?key=secret&a=1&api_key=secret&API%5Fkey=x HTTP/1.1`,
        "Host: client.example",
        "X-First: 1",
        "Connection: keep-alive, X-Hop",
        "X-Hop: gone",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "Proxy-Authorization: p",
        "Forwarded: for=1.2.3.4",
        "X-Forwarded-For: 1.2.3.4",
        "X-Real-IP: 1.2.3.4",
        "Cookie: c=1",
        "X-Guidevane-Class: m",
        "Authorization: Bearer client",
        "Api-Key: k",
        "X-Api-Key: k",
        "X-Goog-Api-Key: k",
        "Content-Type: application/json",
        "traceparent: 00-1-1-01",
        "Tracestate: t",
        "baggage: b",
        "X-Twice: 1",
        "x-twice: 2",
        "x-request-id: mine-1.2:3",
        `Content-Length: ${Buffer.byteLength(PLAIN_BODY)}`,
        "",
        PLAIN_BODY,
      ].join("\r\n"),
    );
    const got = await client.answer();
    expect(headerIn(got, "x-request-id")).toBe("mine-1.2:3");
    const { requestLine, headers } = engine.requests[0]!;
    expect(requestLine).toBe(`POST ${CHAT}?a=1 HTTP/1.1`);
    // What the gateway says of its own connection to the engine is between the two.
    expect(headers.filter(([name]) => name !== "connection")).toEqual([
      ["host", new URL(engine.url).host],
      ["X-First", "1"],
      ["Content-Type", "application/json"],
      ["traceparent", "00-1-1-01"],
      ["Tracestate", "t"],
      ["baggage", "b"],
      ["X-Twice", "1"],
      ["x-twice", "2"],
      ["x-request-id", "mine-1.2:3"],
      ["content-length", String(Buffer.byteLength(PLAIN_BODY))],
    ]);
  });

  it("come back in order, without those of the connection, with the gateway's own", async () => {
    const engine = await setup.engine(({ socket }) =>
      socket.write(
        jsonAnswer(
          "{}",
          200,
          "X-B: 1\r\nSet-Cookie: a\r\nset-cookie: b\r\nConnection: x-hop\r\nX-Hop: 1\r\nProxy-Authenticate: p\r\nX-Guidevane-Engine: lie\r\nX-Request-Id: theirs\r\n",
        ),
      ),
    );
    const gateway = await setup.before({ a: engine });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY, { "x-request-id": "not a plain id" });
    const got = await client.answer();
    const id = headerIn(got, "x-request-id") ?? "";
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    // RFC 9562: the first 48 bits are the milliseconds of now.
    expect(Math.abs(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16) - Date.now())).toBeLessThan(60_000);
    expect(got.headers.filter(([name]) => !/^(connection|keep-alive)$/i.test(name))).toEqual([
      ["content-type", "application/json"],
      ["X-B", "1"],
      ["Set-Cookie", "a"],
      ["set-cookie", "b"],
      ["content-length", "2"],
      ["x-request-id", id],
      ["x-guidevane-engine", "a"],
      ["x-guidevane-snapshot", "0"],
      ["x-guidevane-reason", "bootstrap"],
      ["x-guidevane-key-source", "prompt"],
    ]);
    expect(JSON.stringify(got.headers)).not.toContain(String(engine.port));
  });

  it("bring the engine's own credentials, from the gateway's own fleet file", async () => {
    const engine = await setup.engine(good);
    const fleet = await fleetOf({ a: engine.url }, "", ", auth: { keyEnv: ENGINE_KEY }");
    const gateway = await setup.gateway(fleet, {
      secrets: { env: (name) => (name === "ENGINE_KEY" ? "sesame\n" : undefined), file: () => "" },
    });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY, { authorization: "Bearer client" });
    await client.answer();
    const sent = engine.requests[0]?.headers.filter(([name]) => name.toLowerCase() === "authorization");
    expect(sent).toEqual([["authorization", "Bearer sesame"]]);
  });

  it("bring the client's credentials to an engine that says passthrough", async () => {
    const engine = await setup.engine(good);
    const gateway = await setup.gateway(await fleetOf({ a: engine.url }, "", ", auth: { passthrough: true }"));
    const client = await setup.client(gateway);
    client.post(`${CHAT}?key=mine`, PLAIN_BODY, { authorization: "Bearer client" });
    await client.answer();
    expect(engine.requests[0]?.requestLine).toBe(`POST ${CHAT}?key=mine HTTP/1.1`);
    expect(engine.requests[0]?.headers).toContainEqual(["authorization", "Bearer client"]);
  });

  it("name the session: the same one goes to the same engine, by the first header that has text", async () => {
    const [a, b] = [await setup.engine(good), await setup.engine(good)];
    const gateway = await setup.before({ a, b }, "gateway: { sessionHeaders: [X-Session-Id, x-smg-routing-key] }");
    const client = await setup.client(gateway);
    const seen = new Set<string>();
    for (let i = 0; i < 10; i++) {
      client.post(CHAT, `{"model":"m","messages":[{"role":"user","content":"${i}"}]}`, {
        "x-session-id": i % 2 === 0 ? "" : "  s7 ",
        "X-SMG-Routing-Key": "s7",
      });
      const got = await client.answer();
      expect(headerIn(got, "x-guidevane-key-source")).toBe("header");
      seen.add(headerIn(got, "x-guidevane-engine") ?? "");
    }
    expect(seen.size).toBe(1);
  });
});
