import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EngineAnswer } from "./engine-answers.ts";
import { Harness, healthOf, metrics, SECOND, until } from "./testing/harness.ts";
import { serve } from "./testing/http.ts";

let test: Harness;
beforeEach(() => {
  test = new Harness();
});
afterEach(() => test.close());

const engines = async (url: string) => (await (await fetch(`${url}/v1/engines`)).json()) as EngineAnswer[];

describe("another fleet file", () => {
  it("is planned with at once, its new engines already known, and what was learned of the others kept", async () => {
    test.fleetMore = "policy: { tickMs: 3600000 }";
    const url = await test.started();
    test.e2Status = 503;
    await test.roundsUntil(async () => (await healthOf(url, "e2")) === "dead");
    let asked = 0;
    const e3 = await serve((request, response) => {
      if (request.url === "/health") asked++;
      response.writeHead(500).end();
    });
    const added = `  e3: { url: "http://127.0.0.1:${e3.port}", region: r-east, models: [m], capacityWps: 10 }`;
    await test.control!.reload(await test.fleet(added));
    expect((await engines(url)).map(({ id, health }) => [id, health])).toEqual([
      ["e1", "ready"],
      ["e2", "dead"],
      ["e3", "unknown"],
    ]);
    expect(asked).toBe(1);
    const planned = () => [...(test.solver.seen.at(-1)?.fleet.engines.keys() ?? [])];
    await test.roundsUntil(async () => (await healthOf(url, "e3")) === "dead" && planned().length === 3);
    await e3.close();
  });

  it("B131: lets go of what it does not have any more, and asks it no more", async () => {
    const url = await test.started();
    const whole = await test.fleet();
    const next = { ...whole, engines: new Map([...whole.engines].filter(([id]) => id !== "e2")) };
    await test.control!.reload(next);
    expect((await engines(url)).map(({ id }) => id)).toEqual(["e1"]);
    const scrapes = async (id: string) =>
      Number(new RegExp(`guidevane_scrape_total\\{engine="${id}",result="ok"\\} (\\d+)`).exec(await metrics(url))?.[1]);
    const [one, two] = [await scrapes("e1"), await scrapes("e2")];
    await test.roundsUntil(async () => (await scrapes("e1")) >= one + 2);
    expect(await scrapes("e2")).toBe(two);
    expect([...test.solver.seen.at(-1)!.engines.keys()]).toEqual(["e1"]);
  });

  it("B132: is asked anew about an engine that is reached otherwise, and ticks at its own pace", async () => {
    test.fleetMore = "policy: { tickMs: 3600000 }";
    const url = await test.started();
    test.e1Status = 503;
    await test.roundsUntil(async () => (await healthOf(url, "e1")) === "dead");
    const moved = await serve((_request, response) => response.end());
    test.ports.e1 = moved.port;
    test.fleetMore = "policy: { tickMs: 1000 }";
    await test.control!.reload(await test.fleet());
    expect(await healthOf(url, "e1")).toBe("ready");
    const before = test.solver.seen.length;
    await until(async () => {
      await metrics(url);
      test.clock.advance(SECOND);
      return test.solver.seen.length >= before + 3;
    });
    await moved.close();
  });
});
