import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClusterSnapshot, encodeRing, type Fleet, type SnapshotCell, seededRandom } from "@guidevane/core";
import { buildRing } from "@guidevane/selector";
import { afterEach, describe, expect, it } from "vitest";
import type { Decision } from "./decision.ts";
import type { Gateway } from "./gateway.ts";
import { ScriptedControl } from "./testing/control.ts";
import { fleetOf } from "./testing/fleet.ts";
import { headerIn } from "./testing/raw-client.ts";
import { jsonAnswer } from "./testing/scripted-engine.ts";
import { CHAT, createSetup, eventually, metric } from "./testing/setup.ts";
import { snapshotOf } from "./testing/snapshot.ts";

/** Snapshots too large to be read on a thread that serves requests. */

const ENGINES = 150;
const CLASSES = 6;
const names = (letter: string, count: number): string[] => Array.from({ length: count }, (_, at) => `${letter}${at}`);

const setup = createSetup(afterEach);

async function largeFleet(): Promise<Fleet> {
  const engine = await setup.engine(({ socket }) => void socket.write(jsonAnswer('{"ok":1}')));
  const classes = names("k", CLASSES).map((name) => `  ${name}: { model: m }`);
  return fleetOf(
    Object.fromEntries(names("e", ENGINES).map((id) => [id, `${engine.url}/${id}`])),
    `classes:\n${classes.join("\n")}`,
    ", kind: openai",
  );
}

/** Uneven in everything that a request's decision tells of. */
function largeSnapshot(fleet: Fleet, version: number): ClusterSnapshot {
  const random = seededRandom(version);
  // Decisions are told in hundredths of a millisecond.
  const ms = (): number => Math.round(100 * random()) / 100;
  const base = snapshotOf(fleet, { version }, Object.fromEntries(names("e", ENGINES).map((id) => [id, 1 / ENGINES])));
  const cells = base.cells.map((cell): SnapshotCell => {
    const parts = cell.engines.map(() => 0.1 + random());
    const sum = parts.reduce((total, part) => total + part, 0);
    return {
      ...cell,
      weights: parts.map((part) => part / sum),
      addends: cell.engines.map(() => [ms(), ms(), ms(), ms(), ms()]),
      ring: encodeRing(buildRing(cell.engines, parts, 1024).owners, cell.engines.length),
    };
  });
  return { ...base, cells };
}

async function startBoth(threads: number) {
  const fleet = await largeFleet();
  const plane = await ScriptedControl.start();
  setup.cleanups.push(() => plane.stop());
  const stateDir = await mkdtemp(join(tmpdir(), "guidevane-gateway-"));
  setup.cleanups.push(() => rm(stateDir, { recursive: true, force: true }));
  const options = { controlUrls: [plane.url], threads, stateDir };
  return { fleet, plane, options, gateway: await setup.gateway(fleet, options) };
}

const usesVersion = (gateway: Gateway, version: number) =>
  eventually(async () => (await metric(gateway, "guidevane_snapshot_version")) === version);

/** Sends requests of every class until one of each was routed by that version, and gives what became of those. */
async function decisionsOf(gateway: Gateway, version: number): Promise<Decision[]> {
  const client = await setup.client(gateway);
  const decisions: Decision[] = [];
  for (const [at, name] of names("k", CLASSES).entries()) {
    await eventually(async () => {
      const body = `{"model":"m","messages":[{"role":"user","content":"talk ${at}"}]}`;
      client.post(CHAT, body, { "x-guidevane-class": name });
      const answer = await client.answer();
      expect(answer.status).toBe(200);
      if (headerIn(answer, "x-guidevane-snapshot") !== String(version)) return false;
      const id = headerIn(answer, "x-request-id");
      decisions.push((await (await fetch(`${gateway.adminUrl}/v1/decisions/${id}`)).json()) as Decision);
      return true;
    });
  }
  return decisions;
}

/** Whether threads and process have every figure of it. */
async function expectWhole(gateway: Gateway, snapshot: ClusterSnapshot): Promise<void> {
  const engines = (await (await fetch(`${gateway.adminUrl}/v1/engines`)).json()) as { id: string; share: unknown }[];
  expect(Object.fromEntries(engines.map(({ id, share }) => [id, share]))).toEqual(
    Object.fromEntries(
      names("e", ENGINES).map((id) => [
        id,
        Object.fromEntries(snapshot.cells.map((cell) => [cell.class, cell.weights[cell.engines.indexOf(id)]])),
      ]),
    ),
  );
  for (const { class: name, attempts, weight, addends } of await decisionsOf(gateway, snapshot.version)) {
    const cell = snapshot.cells.find((each) => each.class === name)!;
    const at = cell.engines.indexOf(attempts.at(-1)!.engine);
    expect(weight).toBe(cell.weights[at]);
    expect(Object.values(addends!)).toEqual(cell.addends[at]);
  }
}

describe.each([1, 2])("a large snapshot, with %i threads", (threads) => {
  it("arrives whole, and is there after a restart without the control plane", async () => {
    const { fleet, plane, options, gateway } = await startBoth(threads);
    const snapshot = largeSnapshot(fleet, 3);
    plane.publish(snapshot);
    await usesVersion(gateway, 3);
    await expectWhole(gateway, snapshot);
    const next = largeSnapshot(fleet, 4);
    plane.publish(next);
    await usesVersion(gateway, 4);
    await expectWhole(gateway, next);
    // It is saved beside, after it is in use.
    const file = join(options.stateDir, "snapshot-east.json");
    await eventually(async () => (JSON.parse(await readFile(file, "utf8")) as ClusterSnapshot).version === 4);
    await gateway.stop(0);
    const again = await setup.gateway(fleet, { ...options, controlUrls: [] });
    await expectWhole(again, next);
  });

  it("B153: that fails a check is refused, and the present one goes on", async () => {
    const { fleet, plane, gateway } = await startBoth(threads);
    const good = largeSnapshot(fleet, 3);
    plane.publish(good);
    await usesVersion(gateway, 3);
    plane.checksum = "0".repeat(64);
    plane.publish(largeSnapshot(fleet, 4));
    await eventually(async () => (await metric(gateway, 'guidevane_snapshot_refused_total{reason="checksum"}')) > 0);
    const bad = largeSnapshot(fleet, 5);
    const cells = bad.cells.map((cell) => ({ ...cell, weights: cell.weights.map((weight) => weight / 2) }));
    expect(await gateway.offer(JSON.stringify({ ...bad, cells }))).toMatchObject({ kind: "refused", reason: "schema" });
    await expectWhole(gateway, good);
  });

  it("gives way to the newer of two that come at once, in whichever order", async () => {
    const { fleet, gateway } = await startBoth(threads);
    const [second, third, fourth, fifth] = [2, 3, 4, 5].map((version) => largeSnapshot(fleet, version));
    const rising = await Promise.all([second, third].map((each) => gateway.offer(JSON.stringify(each))));
    expect(rising.map(({ kind }) => kind)).toEqual(["taken", "taken"]);
    await expectWhole(gateway, third!);
    const falling = await Promise.all([fifth, fourth].map((each) => gateway.offer(JSON.stringify(each))));
    expect(falling).toEqual([{ kind: "taken", tag: "1-5" }, expect.objectContaining({ reason: "version" })]);
    await expectWhole(gateway, fifth!);
  });
});
