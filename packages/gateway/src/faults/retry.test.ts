import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "../gateway.ts";
import { answersWell, begun, chat, D, faultBench, NORMAL, type Script } from "../testing/fault-bench.ts";
import { beforePair } from "../testing/pair.ts";
import { headerIn } from "../testing/raw-client.ts";
import { chunked, jsonAnswer, LAST_CHUNK } from "../testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "../testing/setup.ts";
import { SilentPort } from "../testing/silent-port.ts";

/** When another engine is asked, and what it is asked. */

const setup = createSetup(afterEach);

const answers =
  (status: number, body = '{"error":{}}', headers = ""): Script =>
  ({ socket }) =>
    void socket.write(jsonAnswer(body, status, headers));

const never: Script = () => expect.unreachable("this engine was asked");

describe("another engine", () => {
  it.each([CHAT, "/v1/messages"])("B056: says nothing into an answer that has begun (%s)", async (path) => {
    const first =
      path === CHAT ? D("one") : `event: x\ndata: {"type":"content_block_delta","delta":{"text":"one"}}\n\n`;
    const bench = await faultBench(setup, { a: ({ socket }) => void socket.write(begun(first)), b: never });
    const client = await bench.client();
    client.post(path, chat({ max_tokens: 9 }), { "x-request-id": "it" });
    await client.until("one");
    bench.engines.a!.requests[0]!.socket.resetAndDestroy();
    await client.closed;
    expect(client.received.toString().match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(client.received.includes(`\r\n${LAST_CHUNK}`)).toBe(false);
    expect((await bench.ended("it")).outcome).toBe("fault");
    await bench.recovers();
  });

  it.each([2_000, 300_000, 5_000_000])(
    "B057: gets the same body, of %i bytes, by length and in chunks",
    async (size) => {
      const bench = await faultBench(setup, { a: answers(503, "{}", "retry-after: 0\r\n"), b: answersWell });
      const body = Buffer.from(chat({ x: "é".repeat(size / 2) }));
      const client = await bench.client();
      client.post(CHAT, body);
      expect(headerIn(await client.answer(), "x-guidevane-reason")).toBe("retry");
      client.send(`POST ${CHAT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n`);
      for (let at = 0; at < body.length; at += 500_000) client.send(chunked(body.subarray(at, at + 500_000)));
      client.send(LAST_CHUNK);
      expect((await client.answer()).status).toBe(200);
      const seen = bench.engines.b!.requests;
      expect(seen).toHaveLength(2);
      for (const each of seen) {
        expect(each.body.equals(body)).toBe(true);
        expect(each.headers).toContainEqual(["content-length", String(body.length)]);
      }
      await bench.recovers();
    },
  );

  it.each([400, 401, 413, 422])(
    "B058: is not asked after %i, with retries allowed and three to ask",
    async (status) => {
      const all = { a: answers(status, '{"error":{"message":"too long"}}'), b: never, c: never };
      const bench = await faultBench(setup, all, { extra: "gateway: { retry: { attempts: 4 } }" });
      const answer = await bench.ask();
      expect([answer.status, answer.body.toString()]).toEqual([status, '{"error":{"message":"too long"}}']);
      expect(bench.engines.a!.requests).toHaveLength(1);
      await bench.recovers();
    },
  );

  it("B059: serves a session whose own engine refuses, and soon without asking that one first", async () => {
    const bench = await faultBench(
      setup,
      { a: answersWell, b: answersWell, c: answersWell },
      { weights: { a: 0.34, b: 0.33, c: 0.33 }, gateway: { probe: async () => ({ kind: "connected" }) } },
    );
    let key = 0;
    const header = () => ({ "x-session-id": `K${key}` });
    while (headerIn(await bench.ask(chat(), header()), "x-guidevane-engine") !== "a") key += 1;
    await bench.engines.a!.kill();
    let firstTried = 0;
    for (let i = 0; i < 20; i++) {
      const id = `r${i}`;
      expect((await bench.ask(chat(), { ...header(), "x-request-id": id })).status).toBe(200);
      const tried = (await bench.ended(id)).attempts.map(({ engine }) => engine);
      expect(new Set(tried).size).toBe(tried.length);
      if (tried[0] === "a") firstTried += 1;
    }
    expect(firstTried).toBeLessThanOrEqual(3);
  });

  it("B071: answers after the limit of a connection where one is never made, and then at once", async () => {
    const clock = new ManualClock();
    // A port that takes connections and never shakes hands: to the gateway it is still connecting.
    const silent = createServer((socket) => void socket.on("error", () => {}).resume());
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    setup.cleanups.push(() => silent.close());
    const b = await setup.engine(answersWell);
    const gateway = await beforePair(setup, [`https://127.0.0.1:${(silent.address() as AddressInfo).port}`, b], "", {
      clock,
      probe: async () => ({ kind: "connected" }),
    });
    const client = await setup.client(gateway);
    for (let i = 0; i < 4; i++) {
      const connected = once(silent, "connection");
      client.post(CHAT, chat());
      await Promise.race([connected, client.until("HTTP/1.1")]);
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(2000);
      expect((await client.answer()).body.toString()).toBe(NORMAL);
    }
    // After a few of them it is asked no more.
    client.post(CHAT, chat());
    expect(headerIn(await client.answer(), "x-guidevane-engine")).toBe("b");
  });

  it.skipIf(process.platform !== "linux")(
    "B071: answers fifty requests before an address that drops what connects, and few of them after its limit",
    async () => {
      const silent = await SilentPort.start();
      setup.cleanups.push(() => silent.stop());
      const b = await setup.engine(answersWell);
      const gateway = await beforePair(setup, [silent.url, b], "gateway: { timers: { connectMs: 300 } }", {
        probe: async () => ({ kind: "connected" }),
      });
      const client = await setup.client(gateway);
      let waited = 0;
      for (let i = 0; i < 50; i++) {
        client.post(CHAT, chat());
        const answer = await client.answer();
        expect(answer.body.toString()).toBe(NORMAL);
        if (headerIn(answer, "x-guidevane-reason") === "retry") waited += 1;
      }
      expect(waited).toBeGreaterThan(0);
      // Three or four; if it were never ejected, as many as the retry budget gives: eleven.
      expect(waited).toBeLessThan(8);
    },
  );
});

describe("attempts", () => {
  it("B061: that are spent give the client the engine's body with its own hint, and no other hint", async () => {
    const body = '{"error":{"message":"busy","retry_after":2}}';
    const bench = await faultBench(setup, { a: answers(503, body), b: answers(503, body) });
    const answer = await bench.ask();
    expect([answer.status, answer.body.toString()]).toEqual([503, body]);
    expect(headerIn(answer, "retry-after")).toBeUndefined();
    await bench.recovers();
  });

  it("B062: are never more than the limit for a request, and a fifth beyond all requests, in all layers together", async () => {
    const bench = await faultBench(
      setup,
      { a: answers(503, "{}", "retry-after: 0\r\n"), b: answers(503, "{}", "retry-after: 0\r\n") },
      { extra: "gateway: { retry: { attempts: 3 } }" },
    );
    for (let i = 0; i < 100; i++) {
      const id = `r${i}`;
      await bench.ask(PLAIN_BODY, { "x-request-id": id });
      expect((await bench.ended(id)).attempts.length).toBeLessThanOrEqual(3);
    }
    const asked = bench.engines.a!.requests.length + bench.engines.b!.requests.length;
    const spent = await metric(bench.gateway, 'guidevane_retries_total{result="spent"}');
    expect(asked).toBe(100 + spent);
    // Three tokens at the start, one in ten seconds, and a fifth of each first attempt.
    expect(spent).toBeLessThanOrEqual(3 + 20 + 2);
    await bench.recovers();
  });

  it("B062: add up over two gateways one behind the other, and do not multiply", async () => {
    const busy = answers(503, "{}", "retry-after: 0\r\n");
    const retry = { extra: "gateway: { retry: { attempts: 3 } }" };
    const inner = await faultBench(setup, { a: busy, b: busy, c: busy }, retry);
    // For the outer one two engines: each might be asked again, and ask its own again.
    const outer = await beforePair(setup, [inner.gateway.url, inner.gateway.url], retry.extra);
    const client = await setup.client(outer);
    for (let i = 0; i < 100; i++) {
      client.post(CHAT, PLAIN_BODY);
      expect((await client.answer()).status).toBe(503);
    }
    const spentBy = (gateway: Gateway): Promise<number> => metric(gateway, 'guidevane_retries_total{result="spent"}');
    const [spentOutside, spentInside] = [await spentBy(outer), await spentBy(inner.gateway)];
    const asked = Object.values(inner.engines).reduce((sum, { requests }) => sum + requests.length, 0);
    expect(asked).toBe(100 + spentOutside + spentInside);
    // Each by its own budget: tokens at the start, one in ten seconds, and a fifth of each first attempt.
    expect(spentOutside).toBeLessThanOrEqual(3 + 20 + 2);
    expect(spentInside).toBeLessThanOrEqual(3 + (100 + spentOutside) / 5 + 2);
  });

  it("B062: of a client that repeats by itself earn no further ones", async () => {
    const bench = await faultBench(
      setup,
      { a: answers(503, "{}", "retry-after: 0\r\n"), b: answers(503, "{}", "retry-after: 0\r\n") },
      { extra: "gateway: { retry: { startTokens: 0, floorPer10s: 0 } }" },
    );
    for (let i = 0; i < 20; i++) await bench.ask(PLAIN_BODY, { "x-stainless-retry-count": "1" });
    expect(bench.engines.a!.requests.length + bench.engines.b!.requests.length).toBe(20);
    await bench.recovers();
  });

  it("B069: that wait are given up with their client, and what the engine said is known", async () => {
    const clock = new ManualClock();
    const busy = answers(429, "{}", "retry-after: 0\r\n");
    const bench = await faultBench(setup, { a: busy }, { gateway: { clock } });
    const client = await bench.client();
    client.post(CHAT, PLAIN_BODY, { "x-request-id": "it" });
    await eventually(async () => (await bench.decision("it")).attempts?.length === 1);
    client.close();
    const decision = await bench.ended("it");
    expect([decision.outcome, decision.attempts[0]!.status]).toEqual(["cancelled", 429]);
    clock.advance(5000);
    expect(bench.engines.a!.requests).toHaveLength(1);
    await bench.recovers();
  });
});
