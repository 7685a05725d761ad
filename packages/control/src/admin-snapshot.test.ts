import { createHash } from "node:crypto";
import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import { parseClusterSnapshot } from "@guidevane/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { arrived, errorOf, Harness, SECOND } from "./testing/harness.ts";
import { feedEvents } from "./testing/http.ts";

let test: Harness;
beforeEach(() => {
  test = new Harness();
});
afterEach(() => test.close());

describe("GET /v1/snapshot", () => {
  it("gives the cluster's snapshot, gzipped, with its tag and the checksum of its JSON", async () => {
    const url = await test.started();
    const raw = await new Promise<{ headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
      request(`${url}/v1/snapshot?cluster=east`, { headers: { "accept-encoding": "gzip" } }, (res) => {
        const chunks: Buffer[] = [];
        res.on("data", (chunk: Buffer) => chunks.push(chunk));
        res.on("end", () => resolve({ headers: res.headers, body: Buffer.concat(chunks) }));
      })
        .on("error", reject)
        .end();
    });
    expect(raw.headers).toMatchObject({ etag: '"1-1"', "content-encoding": "gzip" });
    const json = gunzipSync(raw.body).toString();
    expect(raw.headers["x-guidevane-checksum"]).toBe(createHash("sha256").update(json).digest("hex"));
    const snapshot = parseClusterSnapshot(json);
    expect(snapshot).toMatchObject({ cluster: "east", version: 1, epoch: 1 });
    expect(snapshot.cells[0]?.demandRps).toBe(7);
  });

  it("is plain to a caller that does not take gzip", async () => {
    const url = await test.started();
    const reply = await fetch(`${url}/v1/snapshot?cluster=west`, { headers: { "accept-encoding": "identity" } });
    expect(reply.headers.get("content-encoding")).toBeNull();
    expect(parseClusterSnapshot(await reply.text()).cluster).toBe("west");
  });

  it("is 503 no_snapshot before the first publication, and comes as soon as there is one to who waits", async () => {
    let publish = () => {};
    const held = new Promise<void>((resolve) => {
      publish = resolve;
    });
    test.solver.outcome = async (inputs) => {
      await held;
      test.solver.outcome = null;
      return test.solver.solve(inputs);
    };
    const begun = test.solver.next();
    const url = await test.start();
    await begun;
    expect(await errorOf(await fetch(`${url}/v1/snapshot?cluster=east`))).toMatchObject({
      status: 503,
      code: "no_snapshot",
    });
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    const waiting = fetch(`${url}/v1/snapshot?cluster=east&wait=30`);
    publish();
    expect((await waiting).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  it("is 304 at once to who has it, and with `wait` only when the time is up", async () => {
    const url = await test.started();
    const headers = { "if-none-match": '"1-1"' };
    expect((await fetch(`${url}/v1/snapshot?cluster=east`, { headers })).status).toBe(304);
    const several = { "if-none-match": 'W/"0-9", W/"1-1"' };
    expect((await fetch(`${url}/v1/snapshot?cluster=east`, { headers: several })).status).toBe(304);

    const events = feedEvents((await fetch(`${url}/v1/feed?cluster=east`)).body!);
    const waiting = fetch(`${url}/v1/snapshot?cluster=east&wait=2`, { headers });
    await arrived(url);
    test.clock.advance(2 * SECOND);
    expect((await waiting).status).toBe(304);

    const newer = fetch(`${url}/v1/snapshot?cluster=east&wait=30`, { headers });
    await arrived(url);
    test.clock.advance(3 * SECOND);
    const reply = await newer;
    expect([reply.status, reply.headers.get("etag")]).toEqual([200, '"1-2"']);
    await events.return(undefined);
  });

  it.each([
    ["/v1/snapshot", 400, "bad_request"],
    ["/v1/snapshot?cluster=nowhere", 404, "unknown_cluster"],
    ["/v1/snapshot?cluster=east&wait=soon", 400, "bad_request"],
    ["/v1/nothing", 404, "not_found"],
    ["/v1/demand", 405, "method_not_allowed"],
  ])("refuses %s with %i %s", async (path, status, code) => {
    expect(await errorOf(await fetch((await test.start()) + path))).toMatchObject({ status, code });
  });
});
