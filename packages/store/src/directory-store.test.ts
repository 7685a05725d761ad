import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import {
  type ClusterSnapshot,
  GuidevaneError,
  ManualClock,
  type OperatorState,
  type Publication,
  type Stamp,
  type StoredPublication,
  seededRandom,
} from "@guidevane/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openDirectoryStore } from "./directory-store.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "guidevane-store-"));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
});

/** A failed test must not leave a writer behind. */
const children: ChildProcess[] = [];

const clockAt = (wallMs: number) => new ManualClock(0, wallMs);
const SECOND = 1000;

describe("a store in a directory", () => {
  it("gives back what was put, with the stamp in every snapshot", async () => {
    const store = openDirectoryStore({ directory, clock: clockAt(77 * SECOND) });
    expect(await store.get()).toBeNull();
    const put = await store.put({ ...publicationOf(["a", "b"], "first"), why: "an engine came back" }, 0);
    expect(put).toMatchObject({ version: 1, epoch: 77, why: "an engine came back" });
    const got = await openDirectoryStore({ directory }).get();
    expect(got).toEqual(put);
    expect(got?.clusters.get("b")).toMatchObject({ cluster: "b", version: 1, epoch: 77 });
    expect(got?.problem).toEqual({ note: "first" });
  });

  it("raises the version by one each time and keeps the epoch of its writer", async () => {
    const store = openDirectoryStore({ directory, clock: clockAt(9 * SECOND) });
    const stamps: number[][] = [];
    for (let version = 0; version < 4; version++) {
      const { version: v, epoch } = await store.put(publicationOf(["a"], `${version}`), version);
      stamps.push([v, epoch]);
    }
    expect(stamps).toEqual([
      [1, 9],
      [2, 9],
      [3, 9],
      [4, 9],
    ]);
  });

  it.each([
    ["the clock is behind the stored epoch", 3, 51],
    ["the clock is ahead of it", 4000, 4000],
  ])("begins a new epoch with each writer when %s", async (_title, seconds, epoch) => {
    await openDirectoryStore({ directory, clock: clockAt(50 * SECOND) }).put(publicationOf(["a"], "old"), 0);
    const next = openDirectoryStore({ directory, clock: clockAt(seconds * SECOND) });
    expect(await next.put(publicationOf(["a"], "new"), 1)).toMatchObject({ version: 2, epoch });
  });

  it("refuses a put that expects another version, and says both", async () => {
    const store = openDirectoryStore({ directory });
    await store.put(publicationOf(["a"], "one"), 0);
    const error = await store.put(publicationOf(["a"], "two"), 0).catch((thrown: unknown) => thrown);
    expect(GuidevaneError.is(error) && error.code).toBe("store_conflict");
    expect(String(error)).toContain("at version 1, the writer expected 0");
    expect((await store.get())?.version).toBe(1);
  });

  it("shuts out a writer that a later one has replaced", async () => {
    const old = openDirectoryStore({ directory, clock: clockAt(100 * SECOND) });
    await old.put(publicationOf(["a"], "old"), 0);
    await openDirectoryStore({ directory, clock: clockAt(100 * SECOND) }).put(publicationOf(["a"], "new"), 1);
    await expect(old.put(publicationOf(["a"], "late"), 2)).rejects.toMatchObject({ code: "store_replaced" });
  });

  it("lets exactly one of two writers have a version", async () => {
    const writers = [1, 2, 3, 4].map(() => openDirectoryStore({ directory, clock: clockAt(5 * SECOND) }));
    const results = await Promise.allSettled(writers.map((each, i) => each.put(publicationOf(["a"], `${i}`), 0)));
    const won = results.filter((each) => each.status === "fulfilled");
    expect(won).toHaveLength(1);
    for (const each of results) if (each.status === "rejected") expect(each.reason.code).toBe("store_conflict");
    expect((await openDirectoryStore({ directory }).get())?.problem).toEqual(
      (won[0] as PromiseFulfilledResult<StoredPublication>).value.problem,
    );
  });

  it("keeps the newest publications and removes the files of older ones", async () => {
    const store = openDirectoryStore({ directory, keep: 3 });
    for (let version = 0; version < 8; version++) await store.put(publicationOf(["a"], `${version}`), version);
    const names = readdirSync(join(directory, "publications")).sort();
    expect(names.filter((name) => name.endsWith(".json"))).toEqual([
      "000000000006.json",
      "000000000007.json",
      "000000000008.json",
    ]);
    expect(names.filter((name) => !name.endsWith(".json"))).toHaveLength(3);
  });

  it.each([
    ["a cluster's blob", (folder: string) => join(folder, "cluster-0.json.gz")],
    ["the problem's blob", (folder: string) => join(folder, "problem.json.gz")],
    ["the manifest", () => join(directory, "publications", "000000000002.json")],
  ])("uses the previous publication when %s of the newest is damaged, and says so once", async (_title, victim) => {
    const writer = openDirectoryStore({ directory });
    await writer.put(publicationOf(["a"], "good"), 0);
    await writer.put(publicationOf(["a"], "bad"), 1);
    const manifest = readFileSync(join(directory, "publications", "000000000002.json"), "utf8");
    damage(victim(join(directory, "publications", JSON.parse(manifest).body.folder)));

    const told: string[] = [];
    const reader = openDirectoryStore({ directory, onProblem: (error) => told.push(error.message) });
    expect((await reader.get())?.problem).toEqual({ note: "good" });
    expect((await reader.get())?.version).toBe(1);
    expect(told).toHaveLength(1);
    // Gateways may have seen version 2, so it is not given to other weights.
    expect(await reader.put(publicationOf(["a"], "next"), 1)).toMatchObject({ version: 3 });
    expect((await reader.get())?.problem).toEqual({ note: "next" });
  });

  it("says that it can't be read when every publication is damaged", async () => {
    const store = openDirectoryStore({ directory });
    await store.put(publicationOf(["a"], "only"), 0);
    damage(join(directory, "publications", "000000000001.json"));
    await expect(openDirectoryStore({ directory }).get()).rejects.toMatchObject({ code: "store_unreadable" });
  });

  it("tells a watcher of the publications of another process", async () => {
    const stamps = new Channel<Stamp>();
    const stop = openDirectoryStore({ directory }).watch((stamp) => stamps.push(stamp));
    const writer = openDirectoryStore({ directory, clock: clockAt(6 * SECOND) });
    await writer.put(publicationOf(["a"], "one"), 0);
    expect(await stamps.next()).toMatchObject({ version: 1, epoch: 6 });
    await writer.put(publicationOf(["a"], "two"), 1);
    expect(await stamps.next()).toMatchObject({ version: 2, epoch: 6 });
    stop();
  });

  it("gives a reader whole publications, newer and newer, while a writer publishes and prunes", {
    timeout: 60_000,
  }, async () => {
    const told: Error[] = [];
    const reader = openDirectoryStore({ directory, onProblem: (error) => told.push(error) });
    let writing = true;
    const writer = (async () => {
      const store = openDirectoryStore({ directory, keep: 1 });
      for (let version = 0; version < 20; version++) await store.put(publicationOf(["a", "b"], `${version}`), version);
      writing = false;
    })();
    const seen: number[] = [];
    while (writing) {
      const found = await reader.get();
      if (found === null) continue;
      seen.push(found.version);
      expect(found.problem).toEqual({ note: `${found.version - 1}` });
    }
    await writer;
    expect(told).toEqual([]);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(new Set(seen).size).toBeGreaterThan(1);
  });

  it("gives back each version that it keeps, and says which those are", async () => {
    const store = openDirectoryStore({ directory, keep: 2 });
    for (let version = 0; version < 3; version++) await store.put(publicationOf(["a"], `${version}`), version);
    expect(await store.versions()).toEqual([3, 2]);
    expect(await store.getVersion(2)).toMatchObject({ version: 2, problem: { note: "1" } });
    expect([await store.getVersion(1), await store.getVersion(9)]).toEqual([null, null]);
    const folder = join(directory, "publications");
    const blobs = readdirSync(folder).filter((name) => name.startsWith("2-"));
    damage(join(folder, blobs[0]!, "problem.json.gz"));
    await expect(store.getVersion(2)).rejects.toMatchObject({ code: "store_unreadable" });
  });

  it("keeps what the operator said, apart from the publications", async () => {
    const store = openDirectoryStore({ directory: join(directory, "new") });
    expect(await store.getOperator()).toEqual({ engines: {} });
    const said: OperatorState = {
      engines: { e1: "draining", e2: "out" },
      frozen: true,
      rolledBackTo: 7,
      pins: [{ cluster: "a", class: "chat", weights: { e1: 0.25, e2: 0.75 }, until: "2026-01-01T00:00:00.000Z" }],
    };
    await store.putOperator(said);
    expect(await openDirectoryStore({ directory: join(directory, "new") }).getOperator()).toEqual(said);
    damage(join(directory, "new", "operator.json"));
    await expect(store.getOperator()).rejects.toMatchObject({ code: "store_unreadable" });
  });
});

describe("a writer killed at any moment", () => {
  it("leaves a whole publication, no older than the last one that it confirmed", { timeout: 120_000 }, async () => {
    const random = seededRandom(11);
    let confirmed = 0;
    let midway = 0;
    const kills = 12;
    // The next one loads while this one writes.
    let next = startWriter();
    for (let kill = 1; kill <= kills; kill++) {
      const child = next;
      if (kill < kills) next = startWriter();
      child.stdin!.end("go");
      const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
      // Killed within a later put: after some confirmed ones, then a random spin of this process's own event loop.
      const puts = 1 + Math.floor(random() * 4);
      for (let i = 0; i < puts; i++) confirmed = Number((await lines.next()).value);
      for (let turns = Math.floor(random() * 300); turns > 0; turns--) await new Promise(setImmediate);
      child.kill("SIGKILL");
      await once(child, "exit");
      for await (const line of lines) confirmed = Number(line);

      const told: Error[] = [];
      const reader = openDirectoryStore({ directory, onProblem: (error) => told.push(error) });
      const found = await reader.get();
      expect(told).toEqual([]);
      expect(found!.version).toBeGreaterThanOrEqual(confirmed);
      expect(found!.version).toBeLessThanOrEqual(confirmed + 1);
      expect([...found!.clusters.keys()]).toEqual(["a", "b", "c"]);
      for (const snapshot of found!.clusters.values()) expect(snapshot.version).toBe(found!.version);
      const folders = readdirSync(join(directory, "publications")).filter((name) => !name.endsWith(".json"));
      if (folders.some((name) => Number(name.split("-")[0]) > found!.version)) midway++;
    }
    // Else the kills all fell between puts, and nothing was shown.
    expect(midway).toBeGreaterThan(0);
  });
});

function startWriter(): ChildProcess {
  const script = `
    import { openDirectoryStore } from ${JSON.stringify(new URL("./directory-store.ts", import.meta.url).href)};
    const store = openDirectoryStore({ directory: ${JSON.stringify(directory)} });
    const publication = { clusters: new Map(${JSON.stringify(["a", "b", "c"].map((name) => [name, snapshotOf(name)]))}), problem: { note: "x".repeat(200000) } };
    for await (const _ of process.stdin);
    let version = (await store.get())?.version ?? 0;
    for (;;) {
      version = (await store.put(publication, version)).version;
      process.stdout.write(version + "\\n");
    }`;
  const child = spawn(process.execPath, ["--conditions=@guidevane/source", "--input-type=module", "-e", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  children.push(child);
  return child;
}

function damage(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length >>> 1]! ^= 0x20;
  writeFileSync(path, bytes);
}

function publicationOf(clusters: string[], note: string): Publication {
  return { clusters: new Map(clusters.map((name) => [name, snapshotOf(name)])), problem: { note } };
}

function snapshotOf(cluster: string): ClusterSnapshot {
  const bound = { objectiveMs: 1, lowerBoundMs: 1, gapMs: 0, gap: 0 };
  return {
    version: 0,
    epoch: 0,
    madeAt: "2026-01-01T00:00:00.000Z",
    cluster,
    gateways: 0,
    engines: {},
    classes: {},
    cells: [],
    certificate: { ...bound, churnFree: bound, expectedLatencyMs: 1 },
  };
}

/** Values in the order that they came, each awaited. */
class Channel<T> {
  #values: T[] = [];
  #waiting: ((value: T) => void)[] = [];

  push(value: T): void {
    const waiter = this.#waiting.shift();
    if (waiter === undefined) this.#values.push(value);
    else waiter(value);
  }

  next(): Promise<T> {
    const value = this.#values.shift();
    return value === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(value);
  }
}
