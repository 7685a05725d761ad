import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Fleet, isNewer, parseClusterSnapshot } from "@guidevane/core";
import { verifyCertificate } from "@guidevane/optimizer";
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

  /** @param edit of the fleet file, as an operator would before a restart */
  async function start(
    edit: (fleet: Fleet) => Fleet = (fleet) => fleet,
  ): Promise<{ control: RunningControl; logger: TestLogger }> {
    const logger = new TestLogger();
    const fleet = await testFleet(
      { e1: engine.port, e2: engine.port },
      "policy: { tickMs: 100, slots: 256, solveMs: 20000, gateMs: 0 }",
    );
    const control = await startControl({
      fleet: edit(fleet),
      store: openDirectoryStore({ directory }),
      adminHost: "127.0.0.1",
      adminPort: 0,
      logger,
    });
    return { control, logger };
  }

  async function snapshot(control: RunningControl, has = "", cluster = "east") {
    const reply = await fetch(`${control.adminUrl}/v1/snapshot?cluster=${cluster}&wait=50`, {
      headers: { "if-none-match": has },
    });
    expect(reply.status).toBe(200);
    return { tag: reply.headers.get("etag")!, snapshot: parseClusterSnapshot(await reply.text()) };
  }

  it("solves, verifies and publishes tick after tick, and goes on from there after restarts and edits", {
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
    expect(faults(logger)).toEqual(Array(2).fill("metrics can't be read: no known series on the page"));

    const stored = await openDirectoryStore({ directory }).get();
    expect(verifyCertificate(stored!)).toEqual([]);

    const again = await start();
    const after = await snapshot(again.control);
    // Frozen inputs move no key.
    expect(after.snapshot.cells[0]?.ring).toBe(second.snapshot.cells[0]?.ring);
    const newer = await snapshot(again.control, after.tag);
    expect(isNewer(newer.snapshot, after.snapshot)).toBe(true);
    expect(isNewer(newer.snapshot, second.snapshot)).toBe(true);
    await again.control.stop();

    // Without e2, and with a cluster more.
    const edited = await start((fleet) => ({
      ...fleet,
      engines: new Map([...fleet.engines].filter(([id]) => id !== "e2")),
      clusters: new Map([...fleet.clusters, ["north", { name: "north", region: "r-east" }]]),
    }));
    let changed = await snapshot(edited.control);
    // Until its first tick it serves what was stored.
    while (Object.hasOwn(changed.snapshot.engines, "e2")) changed = await snapshot(edited.control, changed.tag);
    expect(Object.keys(changed.snapshot.engines)).toEqual(["e1"]);
    expect(changed.snapshot.cells[0]?.weights).toEqual([1]);
    expect((await snapshot(edited.control, "", "north")).snapshot.cluster).toBe("north");
    await edited.control.stop();
    expect(faults(edited.logger)).toHaveLength(1);
  });
});

/** Warnings but the one that the twin solves, said where there is no addon. */
function faults({ warnings }: TestLogger): string[] {
  return warnings.filter((each) => !each.startsWith("plans are solved in TypeScript"));
}
