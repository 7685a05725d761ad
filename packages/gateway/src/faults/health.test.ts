import { ManualClock } from "@guidevane/core";
import { afterEach, describe, expect, it } from "vitest";
import { answersWell, begun, chat, D, DONE, FIN, faultBench, type Script } from "../testing/fault-bench.ts";
import { fleetOf } from "../testing/fleet.ts";
import { headerIn } from "../testing/raw-client.ts";
import { chunked, type EngineRequestSeen, jsonAnswer, LAST_CHUNK, ScriptedEngine } from "../testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric, PLAIN_BODY } from "../testing/setup.ts";
import { snapshotOf } from "../testing/snapshot.ts";

/** Engines that come, go, move, and say that they are busy. */

const setup = createSetup(afterEach);

describe("the list of models", () => {
  it("B089: is what the fleet serves, without an engine being asked, one down or all", async () => {
    const bench = await faultBench(setup, { a: answersWell, b: answersWell });
    const client = await bench.client();
    for (const down of ["a", "b"]) {
      await bench.engines[down]!.kill();
      for (let i = 0; i < 10; i++) {
        client.send("GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n");
        const answer = await client.answer();
        const { data } = JSON.parse(answer.body.toString()) as { data: { id: string }[] };
        expect([answer.status, data.map(({ id }) => id)]).toEqual([200, ["m"]]);
      }
    }
    expect(bench.engines.a!.requests).toEqual([]);
  });
});

/** A stream that has begun at `a`, with what ends it. */
async function streamAt(gateway: Parameters<typeof setup.client>[0], engine: ScriptedEngine) {
  const client = await setup.client(gateway);
  client.post(CHAT, chat());
  await client.until('"1"');
  const { socket } = engine.requests.at(-1)!;
  return async (): Promise<string> => {
    socket.write(Buffer.concat([chunked(FIN + DONE), Buffer.from(LAST_CHUNK)]));
    return (await client.answer()).body.toString();
  };
}

const begins: Script = ({ socket, body }) =>
  void socket.write(body.includes('"stream":true') ? begun(D("1")) : jsonAnswer("{}"));

describe("an engine of a snapshot", () => {
  it("B091: that is taken out and put back while a stream runs is in service at once, and the stream ends well", async () => {
    const [a, b] = [await setup.engine(begins), await setup.engine(begins)];
    const both = await fleetOf({ a: a.url, b: b.url });
    const gateway = await setup.gateway(both);
    const publish = async (fleet: typeof both, version: number, weights: Record<string, number>) =>
      expect((await gateway.offer(JSON.stringify(snapshotOf(fleet, { version }, weights)))).kind).toBe("taken");
    await publish(both, 1, { a: 1 });
    const end = await streamAt(gateway, a);
    await publish(await fleetOf({ b: b.url }), 2, { b: 1 });
    const client = await setup.client(gateway);
    const servedBy = async (): Promise<string | undefined> => {
      client.post(CHAT, PLAIN_BODY);
      return headerIn(await client.answer(), "x-guidevane-engine");
    };
    expect(await servedBy()).toBe("b");
    await publish(both, 3, { a: 1 });
    expect(await servedBy()).toBe("a");
    expect(await metric(gateway, 'guidevane_in_flight{engine="a"}')).toBe(1);
    expect(await end()).toBe(D("1") + FIN + DONE);
    await eventually(async () => (await metric(gateway, 'guidevane_in_flight{engine="a"}')) === 0);
    expect(await servedBy()).toBe("a");
  });

  it("B092: that moved to another address stays in service when the process at the old one goes", async () => {
    const old = await ScriptedEngine.start(begins);
    const replacement = await setup.engine(answersWell);
    const fleet = await fleetOf({ a: old.url });
    const gateway = await setup.gateway(fleet);
    await gateway.offer(JSON.stringify(snapshotOf(fleet, { version: 1 }, { a: 1 })));
    await streamAt(gateway, old);
    await gateway.offer(JSON.stringify(snapshotOf(await fleetOf({ a: replacement.url }), { version: 2 }, { a: 1 })));
    await old.kill();
    const client = await setup.client(gateway);
    for (let i = 0; i < 5; i++) {
      client.post(CHAT, PLAIN_BODY);
      expect((await client.answer()).status).toBe(200);
    }
    expect(replacement.requests).toHaveLength(5);
    const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { health: string }[];
    expect(engines.map(({ health }) => health)).toEqual(["ready"]);
  });
});

describe("a connection to an engine", () => {
  it("B094: is made anew each minute under steady traffic, so that a name's new address is found", async () => {
    const clock = new ManualClock();
    const engine = await setup.engine(answersWell);
    const gateway = await setup.before({ a: engine.url.replace("127.0.0.1", "localhost") }, "", { clock });
    const client = await setup.client(gateway);
    const steady = async (seconds: number): Promise<void> => {
      for (let passed = 0; passed < seconds; passed++) {
        client.post(CHAT, PLAIN_BODY);
        expect((await client.answer()).status).toBe(200);
        clock.advance(1000);
      }
    };
    await steady(50);
    expect(engine.connections).toBe(1);
    await steady(130);
    expect(engine.connections).toBeGreaterThanOrEqual(3);
    expect(engine.connections).toBeLessThanOrEqual(5);
  });
});

describe("an engine that is cooling", () => {
  it("B096: is left alone until the latest of its times, and from the very next request on", async () => {
    const clock = new ManualClock();
    const held: EngineRequestSeen[] = [];
    const bench = await faultBench(
      setup,
      { a: (request) => void held.push(request), b: ({ socket }) => void socket.write(jsonAnswer("{}")) },
      { gateway: { clock } },
    );
    const busy = (headers: string): void => void held.shift()!.socket.write(jsonAnswer("{}", 503, headers));
    const [first, second] = [bench.ask(PLAIN_BODY), bench.ask(PLAIN_BODY)];
    await eventually(() => held.length === 2);
    busy("retry-after: 20\r\n");
    // One of them was answered by the other engine now; the second refusal asks for less.
    await Promise.race([first, second]);
    busy("retry-after: 1\r\n");
    await Promise.all([first, second]);
    for (let passed = 0; passed < 19; passed++) {
      expect(headerIn(await bench.ask(PLAIN_BODY), "x-guidevane-engine")).toBe("b");
      clock.advance(1000);
    }
    expect(held).toEqual([]);
    clock.advance(1100);
    bench.script("a", ({ socket }) => void socket.write(jsonAnswer("{}")));
    expect(headerIn(await bench.ask(PLAIN_BODY), "x-guidevane-engine")).toBe("a");
    await bench.recovers();
  });
});

describe("a gateway that is replaced", () => {
  it("B098: is not ready at once, serves on for a while, then lets its streams finish", async () => {
    const clock = new ManualClock();
    const engine = await setup.engine(begins);
    const gateway = await setup.before({ a: engine }, "", { clock });
    const streams = [await setup.client(gateway), await setup.client(gateway)];
    for (const client of streams) {
      client.post(CHAT, chat());
      await client.until('"1"');
    }
    const sockets = engine.requests.map(({ socket }) => socket);
    const kept = await setup.client(gateway);
    const stopped = gateway.stop(60_000, 5000);
    const admin = async (path: string): Promise<number> => (await fetch(`${gateway.adminUrl}${path}`)).status;
    expect([await admin("/readyz"), await admin("/healthz")]).toEqual([503, 200]);
    for (let passed = 0; passed < 4; passed++) {
      clock.advance(1000);
      const client = await setup.client(gateway);
      client.post(CHAT, PLAIN_BODY);
      expect((await client.answer()).status).toBe(200);
      client.close();
    }
    kept.post(CHAT, chat());
    await kept.until('"1"');
    clock.advance(1000);
    await eventually(async () => (await setup.client(gateway).catch(() => null)) === null);
    expect(await admin("/healthz")).toBe(200);
    for (const socket of [...sockets, engine.requests.at(-1)!.socket])
      socket.write(Buffer.concat([chunked(FIN + DONE), Buffer.from(LAST_CHUNK)]));
    for (const client of [...streams, kept]) expect((await client.answer()).body.toString()).toBe(D("1") + FIN + DONE);
    await stopped;
    await Promise.all([...streams, kept].map(({ closed }) => closed));
  });
});
