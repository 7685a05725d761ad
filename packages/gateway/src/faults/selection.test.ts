import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import type { Gateway } from "../gateway.ts";
import { answersWell, begun, chat, D, faultBench, type Script } from "../testing/fault-bench.ts";
import { fleetOf } from "../testing/fleet.ts";
import { headerIn } from "../testing/raw-client.ts";
import { jsonAnswer } from "../testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "../testing/setup.ts";
import { snapshotOf } from "../testing/snapshot.ts";

/** What the gateway counts at engines, and how it reaches them. */

const setup = createSetup(afterEach);

const inFlight = (gateway: Gateway): Promise<number> => metric(gateway, 'guidevane_in_flight{engine="a"}');

describe("the count of what runs at an engine", () => {
  /** Each ends one request in its way: the engine's part, and what the client does then. */
  const ways: readonly (readonly [string, Script, "wait" | "leave" | "leave midway" | "time passes"])[] = [
    ["ok", answersWell, "wait"],
    ["a reset before the head", ({ socket }) => void socket.resetAndDestroy(), "wait"],
    ["a reset midway", ({ socket }) => void socket.write(begun(D("1")), () => socket.resetAndDestroy()), "wait"],
    ["a client gone before the head", () => {}, "leave"],
    ["a client gone midway", ({ socket }) => void socket.write(begun(D("1"))), "leave midway"],
    ["a time-out", () => {}, "time passes"],
    ["a refusal", ({ socket }) => void socket.write(jsonAnswer("{}", 400)), "wait"],
    ["an engine that is busy", ({ socket }) => void socket.write(jsonAnswer("{}", 503)), "wait"],
    ["no answer at all", ({ socket }) => void socket.end(), "wait"],
    ["what is no HTTP", ({ socket }) => void socket.write("SSH-2.0\r\n"), "wait"],
  ];

  it("B099: is 0 after 300 requests that end in every way, and right while they run", async () => {
    const clock = new ManualClock();
    const bench = await faultBench(
      setup,
      { a: answersWell },
      { extra: "gateway: { timers: { firstTokenMs: 1000 }, retry: { attempts: 1 } }", gateway: { clock } },
    );
    for (const [what, script, then] of ways) {
      bench.script("a", script);
      const before = bench.engines.a!.requests.length;
      const clients = await Promise.all(Array.from({ length: 30 }, () => bench.client()));
      for (const client of clients) client.post(CHAT, chat());
      await eventually(() => bench.engines.a!.requests.length === before + 30);
      if (then === "leave midway") await Promise.all(clients.map((client) => client.until('"1"')));
      if (then !== "wait") expect(await inFlight(bench.gateway), what).toBe(30);
      if (then === "time passes") clock.advance(1000);
      if (then === "leave" || then === "leave midway") for (const client of clients) client.close();
      await eventually(async () => (await inFlight(bench.gateway)) === 0);
      for (const client of clients) client.close();
      // A busy engine is left alone for a second.
      clock.advance(2000);
    }
    await bench.recovers();
  });
});

describe("an engine's address", () => {
  const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === "::1"));
  it.skipIf(!hasIpv6)("B117: may be of IPv6: it is reached, named as it should be, and probed", async () => {
    const heads: string[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (bytes) => {
        heads.push(bytes.toString("latin1"));
        socket.write(jsonAnswer("{}"));
      });
    });
    server.listen(0, "::1");
    await once(server, "listening");
    setup.cleanups.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    const gateway = await setup.before({ a: `http://[::1]:${port}` });
    await eventually(() => heads.some((head) => head.startsWith("GET /health")));
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(200);
    for (const head of heads) expect(head.toLowerCase()).toContain(`\r\nhost: [::1]:${port}\r\n`);
    client.close();
  });

  it.each([
    ["", CHAT],
    ["/", CHAT],
    ["/v1", CHAT],
    ["/v1/", CHAT],
    ["/base/v1", `/base${CHAT}`],
    ["/base", `/base${CHAT}`],
  ])("B139: may end in %j, and its paths are neither doubled nor short", async (end, path) => {
    const engine = await setup.engine(answersWell);
    const gateway = await setup.before({ a: engine.url + end });
    const client = await setup.client(gateway);
    client.post(CHAT, PLAIN_BODY);
    expect((await client.answer()).status).toBe(200);
    expect(engine.requests[0]!.requestLine).toBe(`POST ${path} HTTP/1.1`);
  });
});

describe("snapshots that follow each other fast", () => {
  it("B142: send each request to an engine of the snapshot that routed it, and all are served", async () => {
    const engines = {
      a: await setup.engine(answersWell),
      b: await setup.engine(answersWell),
      c: await setup.engine(answersWell),
    };
    const fleetWith = (ids: readonly ("a" | "b" | "c")[]) =>
      fleetOf(Object.fromEntries(ids.map((id) => [id, engines[id].url])));
    const lists = [["a", "b", "c"], ["c", "b"], ["b", "a"], ["a"], ["c", "a", "b"], ["c"]] as const;
    const fleets = await Promise.all(lists.map(fleetWith));
    const gateway = await setup.gateway(fleets[0]!);
    const clients = await Promise.all(Array.from({ length: 6 }, () => setup.client(gateway)));
    for (let version = 1; version <= 30; version++) {
      const ids = lists[version % lists.length]!;
      const weights = Object.fromEntries(ids.map((id) => [id, 1 / ids.length]));
      const snapshot = snapshotOf(fleets[version % lists.length]!, { version }, weights);
      const running = clients.map((client, i) => {
        client.post(CHAT, chat({ prompt_cache_key: `${version} ${i}` }));
        return client.answer();
      });
      // These are on their way while the list changes; those after it know the new one alone.
      expect((await gateway.offer(JSON.stringify(snapshot))).kind).toBe("taken");
      for (const answer of await Promise.all(running)) expect(answer.status).toBe(200);
      for (const client of clients.slice(0, 3)) {
        client.post(CHAT, chat({ prompt_cache_key: `${version}` }));
        const answer = await client.answer();
        expect([answer.status, headerIn(answer, "x-guidevane-snapshot")]).toEqual([200, String(version)]);
        expect(ids).toContain(headerIn(answer, "x-guidevane-engine"));
      }
    }
  });
});
