import { once } from "node:events";
import { ServerResponse } from "node:http";
import { type AddressInfo, createServer, Socket } from "node:net";
import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { readBody } from "../body.ts";
import { BodyMemory } from "../body-memory.ts";
import { FrontRequest } from "../front-request.ts";
import { LoopTurns } from "../loop-turns.ts";
import { answersWell, chat, faultBench } from "../testing/fault-bench.ts";
import { jsonAnswer } from "../testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "../testing/setup.ts";

/** What is written down of requests, and what a large one costs the others. */

const setup = createSetup(afterEach);

describe("the books", () => {
  it("B165: know no path and no model of a client's making, and count what is not there as no success", async () => {
    const bench = await faultBench(setup, { a: answersWell });
    const client = await bench.client();
    const text = async (): Promise<string> => (await fetch(`${bench.gateway.adminUrl}/metrics`)).text();
    let before = 0;
    for (let i = 0; i < 30; i++) {
      client.send(`GET /v1/models/made-up-${i} HTTP/1.1\r\nhost: x\r\n\r\n`);
      expect((await client.answer()).status).toBe(404);
      const own = await bench.client();
      own.post(`/v1/made-up-${i}`, "{}");
      expect((await own.answer()).status).toBe(404);
      client.post(CHAT, `{"model":"made-up-${i}","messages":[]}`);
      expect((await client.answer()).status).toBe(404);
      if (i === 0) before = (await text()).split("\n").length;
    }
    expect((await text()).split("\n")).toHaveLength(before);
    expect(await text()).not.toContain("made-up");
    expect(await text()).not.toContain('outcome="success"');
    expect(await metric(bench.gateway, 'guidevane_requests_total{class="other",outcome="rejected"}')).toBeGreaterThan(
      59,
    );
    await bench.recovers();
  });

  it("B172: count every request that is refused early, once", async () => {
    const limits = "limits: { bodyBytes: 1000, headBytes: 2048, bodyMs: 50 }";
    const bench = await faultBench(setup, { a: answersWell }, { extra: `gateway: { ${limits} }` });
    const head = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\n`;
    const refused = async (): Promise<number> => {
      const text = await (await fetch(`${bench.gateway.adminUrl}/metrics`)).text();
      const lines = text.matchAll(/^guidevane_requests_total\{.*outcome="(?:rejected|cancelled)"\} (\S+)$/gm);
      return [...lines].reduce((sum, [, value]) => sum + Number(value), 0);
    };
    const ways: readonly (readonly [number | null, string])[] = [
      [413, `${head}content-length: 5000\r\n\r\n`],
      [431, `${head}x-large: ${"x".repeat(4000)}\r\n\r\n`],
      [400, `${head}content-length: +4\r\n\r\nabcd`],
      [400, `${head}content-length: 5\r\n\r\nhello`],
      [404, `${head}content-length: 13\r\n\r\n{"model":"n"}`],
      [405, `PUT ${CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`],
      [408, `${head}content-length: 5\r\n\r\nhe`],
      [null, `${head}content-length: 5\r\n\r\nhe`],
    ];
    for (const [at, [status, bytes]] of ways.entries()) {
      const client = await bench.client();
      client.send(bytes);
      if (status === null) client.socket.end();
      else expect((await client.answer()).status).toBe(status);
      client.close();
      await eventually(async () => (await refused()) === at + 1);
    }
    await bench.recovers();
    expect(await refused()).toBe(ways.length);
  });

  it("B168: have no time to a first token for an answer that is no stream, and its whole time", async () => {
    const clock = new ManualClock();
    const bench = await faultBench(setup, { a: () => {} }, { gateway: { clock } });
    const client = await bench.client();
    client.post(CHAT, PLAIN_BODY, { "x-request-id": "it" });
    const { socket } = await bench.engines.a!.next();
    clock.advance(4000);
    socket.write(jsonAnswer('{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'));
    await client.answer();
    expect(await bench.ended("it")).toMatchObject({ ttftMs: null, attempts: [{ firstTokenMs: null, endMs: 4000 }] });
    expect(await metric(bench.gateway, 'guidevane_ttft_seconds_count{class="m"}')).toBe(0);
    expect(await metric(bench.gateway, 'guidevane_request_seconds_sum{class="m"}')).toBe(4);
    await bench.recovers();
  });
});

describe("a large prompt", () => {
  /** The longest turn of the event loop while `run` runs, in ms of this thread's CPU: other processes don't count. */
  async function longestTurnMs(run: () => Promise<void>): Promise<number> {
    let longest = 0;
    let running = true;
    const turns = (async () => {
      let last = process.threadCpuUsage();
      while (running) {
        await new Promise((resolve) => setImmediate(resolve));
        const used = process.threadCpuUsage(last);
        longest = Math.max(longest, (used.user + used.system) / 1000);
        last = process.threadCpuUsage();
      }
    })();
    await run();
    running = false;
    await turns;
    return longest;
  }

  /** An engine that keeps nothing of what it reads, and answers when all of it came. */
  async function drain(bytes: number): Promise<string> {
    const server = createServer((socket) => {
      let left = bytes;
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        left -= chunk.length;
        // The head comes on top of the body.
        if (left > 0) return;
        left = bytes;
        socket.write(jsonAnswer("{}"));
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    setup.cleanups.push(() => server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("B051: is handed on in a turn of its own, though ten of them end in the same one", async () => {
    let turn = 0;
    let isRunning = true;
    const count = (): void => {
      turn += 1;
      if (isRunning) setImmediate(count);
    };
    count();
    const turns = new LoopTurns();
    const parts = { clock: new ManualClock(), turns, memory: new BodyMemory(() => 1e9) };
    const read = (bytes: number): Promise<number> => {
      const request = new FrontRequest(new Socket());
      const exchange = { request, response: new ServerResponse(request), share: parts.memory.share() };
      const handedOn = new Promise<number>((resolve) =>
        readBody(exchange, { bodyBytes: 20_000_000, bodyMs: 1000 }, parts, () => resolve(turn)),
      );
      request.push(Buffer.alloc(bytes));
      request.push(null);
      return handedOn;
    };
    const began = turn;
    const large = Array.from({ length: 10 }, () => read(2_000_000));
    expect(await read(1000)).toBe(began);
    expect(new Set(await Promise.all(large)).size).toBe(10);
    isRunning = false;
  });

  it.skipIf(typeof process.threadCpuUsage !== "function")(
    "B051: of 20 MB, ten at once, stops the event loop for no longer than a few of them would",
    async () => {
      const message = { role: "user", content: 'words and "quotes" '.repeat(200) };
      const body = Buffer.from(chat({ stream: false, messages: Array.from({ length: 5000 }, () => message) }));
      expect(body.length).toBeGreaterThan(20_000_000);
      const gateway = await setup.before({ a: await drain(body.length) });
      const clients = await Promise.all(Array.from({ length: 10 }, () => setup.client(gateway)));
      const longestOf = (asking: typeof clients): Promise<number> =>
        longestTurnMs(async () => {
          for (const client of asking) {
            client.post(CHAT, body);
            // What the client itself spends is in another turn.
            await new Promise((resolve) => setImmediate(resolve));
          }
          for (const client of asking) expect((await client.answer()).status).toBe(200);
        });
      const ofOneMs = await longestOf(clients.slice(0, 1));
      expect(await longestOf(clients)).toBeLessThan(4 * ofOneMs + 10);
      for (const client of clients) client.close();
    },
    60_000,
  );
});
