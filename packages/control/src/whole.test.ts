import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isNewer, parseClusterSnapshot } from "@guidevane/core";
import { verifyPublication } from "@guidevane/optimizer";
import { openDirectoryStore } from "@guidevane/store";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningControl, startControl } from "./start-control.ts";
import { testFleet } from "./testing/fleet.ts";
import { serve, type TestServer } from "./testing/http.ts";
import { TestLogger } from "./testing/parts.ts";

/** With the real solver in its worker thread, the real store, real time. */
describe("a whole control plane", () => {
  let directory: string;
  let engine: TestServer;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "guidevane-control-"));
    engine = await serve((_request, response) => void response.end());
  });
  afterAll(async () => {
    await engine.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function start(): Promise<{ control: RunningControl; logger: TestLogger }> {
    const logger = new TestLogger();
    const fleet = await testFleet(
      { e1: engine.port, e2: engine.port },
      "policy: { tickMs: 100, slots: 256, solveMs: 20000 }",
    );
    const control = await startControl({
      fleet,
      store: openDirectoryStore({ directory }),
      adminHost: "127.0.0.1",
      adminPort: 0,
      logger,
    });
    return { control, logger };
  }

  async function snapshot(control: RunningControl, has = "") {
    const reply = await fetch(`${control.adminUrl}/v1/snapshot?cluster=east&wait=50`, {
      headers: { "if-none-match": has },
    });
    expect(reply.status).toBe(200);
    return { tag: reply.headers.get("etag")!, snapshot: parseClusterSnapshot(await reply.text()) };
  }

  it("solves, verifies and publishes tick after tick, and goes on from there after a restart", {
    timeout: 60_000,
  }, async () => {
    const { control, logger } = await start();
    const first = await snapshot(control);
    expect(first.snapshot.cells[0]?.demandRps).toBe(7);
    const second = await snapshot(control, first.tag);
    expect(second.snapshot.version).toBeGreaterThan(first.snapshot.version);
    expect(second.snapshot.epoch).toBe(first.snapshot.epoch);
    await control.stop();
    // The engine's page has no metrics, which is told of once an engine; nothing else may be wrong.
    expect(logger.warnings).toEqual(Array(2).fill("metrics can't be read: no known series on the page"));

    const stored = await openDirectoryStore({ directory }).get();
    expect(verifyPublication(stored!)).toEqual([]);

    const again = await start();
    const after = await snapshot(again.control);
    // Frozen inputs move no key.
    expect(after.snapshot.cells[0]?.ring).toBe(second.snapshot.cells[0]?.ring);
    const newer = await snapshot(again.control, after.tag);
    expect(isNewer(newer.snapshot, after.snapshot)).toBe(true);
    expect(isNewer(newer.snapshot, second.snapshot)).toBe(true);
    await again.control.stop();
  });
});
