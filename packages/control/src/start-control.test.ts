import { request } from "node:http";
import { GuidevaneError } from "@guidevane/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startControl } from "./start-control.ts";
import { testFleet } from "./testing/fleet.ts";
import { arrived, errorOf, Harness, post } from "./testing/harness.ts";
import { TestSolver } from "./testing/parts.ts";

let test: Harness;
beforeEach(() => {
  test = new Harness();
});
afterEach(() => test.close());

describe("who may speak to it", () => {
  it("refuses to start on an address that is not loopback without a token", async () => {
    const error = await test.start({ adminHost: "0.0.0.0" }).catch((thrown: unknown) => thrown);
    expect(GuidevaneError.is(error) && error.code).toBe("bad_usage");
    expect(String(error)).toContain("GUIDEVANE_ADMIN_TOKEN");
  });

  it("B180: asks for the token everywhere but at the probes and the page", async () => {
    const url = await test.start({ adminToken: "s3cret" });
    for (const path of ["/v1/engines", "/v1/snapshot?cluster=east", "/metrics", "/v1/feed?cluster=east"])
      expect(await errorOf(await fetch(url + path))).toMatchObject({ status: 401, code: "unauthorized" });
    const wrong = await fetch(`${url}/v1/engines`, { headers: { authorization: "Bearer s3cre" } });
    expect(wrong.status).toBe(401);
    expect(wrong.headers.get("www-authenticate")).toBe("Bearer");
    expect((await fetch(`${url}/v1/engines`, { headers: { authorization: "Bearer s3cret" } })).status).toBe(200);
    for (const path of ["/healthz", "/"]) expect((await fetch(url + path)).status).toBe(200);
  });

  it("refuses web pages of other sites where no token guards it", async () => {
    const url = await test.started();
    const foreign = await post(`${url}/v1/engines/e1/out`, { on: true }, { origin: "https://evil.example" });
    expect(await errorOf(foreign)).toMatchObject({ status: 403, code: "foreign_origin" });
    const status = await new Promise<number | undefined>((resolve, reject) => {
      request(`${url}/v1/engines`, { headers: { host: "rebound.example:80" } }, (res) => {
        res.resume();
        resolve(res.statusCode);
      })
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
    expect((await post(`${url}/v1/engines/e1/out`, { on: true }, { origin: url })).status).toBe(200);
  });

  it("says which address is taken", async () => {
    const port = Number(new URL(await test.start()).port);
    const second = startControl({
      fleet: await testFleet(),
      store: test.store,
      adminHost: "127.0.0.1",
      adminPort: port,
      logger: test.logger,
      clock: test.clock,
      solver: new TestSolver(),
    });
    await expect(second).rejects.toMatchObject({ code: "bad_usage", message: expect.stringContaining(`:${port}`) });
  });
});

describe("stopping", () => {
  it("ends feeds and waiting callers, and closes the port", async () => {
    const url = await test.started();
    const feed = await fetch(`${url}/v1/feed?cluster=east`);
    const waiting = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers: { "if-none-match": '"1-1"' } });
    const outcome = waiting.then(
      (reply) => reply.status,
      () => "cut",
    );
    await arrived(url);
    await test.control!.stop();
    test.control = undefined;
    await feed.text();
    expect(await outcome).toBe("cut");
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });
});
