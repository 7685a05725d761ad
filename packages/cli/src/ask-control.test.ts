import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { type RunningControl, startControl } from "@guidevane/control";
import { type Fleet, loadFleet, parseClusterSnapshot } from "@guidevane/core";
import type { Diff, WhatIf } from "@guidevane/optimizer";
import { openDirectoryStore } from "@guidevane/store";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "./program.ts";
import { DEFAULT_FLEET } from "./up-fleet.ts";
import { fetchSnapshots } from "./up-measure.ts";

/** The three-cluster example before a control plane with the real solver; its engines are one that is always well. */
let engine: Server;
let control: RunningControl;
let folder = "";
beforeAll(async () => {
  engine = createServer((_request, response) => void response.end());
  await new Promise<void>((done) => engine.listen(0, "127.0.0.1", done));
  folder = await mkdtemp(join(tmpdir(), "guidevane-explain-"));
  control = await startControl({
    fleet: await exampleFleet(),
    store: openDirectoryStore({ directory: folder }),
    adminHost: "127.0.0.1",
    adminPort: 0,
    logger: { info() {}, warn() {}, error() {} },
  });
  await (await fetch(`${control.adminUrl}/v1/snapshot?cluster=a&wait=50`)).arrayBuffer();
}, 60_000);
afterAll(async () => {
  await control.stop();
  engine.close();
  engine.closeAllConnections();
  await rm(folder, { recursive: true, force: true });
});

async function exampleFleet(): Promise<Fleet> {
  const { port } = engine.address() as AddressInfo;
  const text = (await readFile(DEFAULT_FLEET, "utf8")).replaceAll(/127\.0\.0\.1:\d+/g, `127.0.0.1:${port}`);
  return loadFleet(text, "fleet.yaml", (named) => readFile(resolve(dirname(DEFAULT_FLEET), named), "utf8"));
}

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const said = { stdout: "", stderr: "" };
  const code = await runProgram([...args, "--control", control.adminUrl], {
    out: (text) => {
      said.stdout += text;
    },
    err: (text) => {
      said.stderr += text;
    },
  });
  return { code, ...said };
}

const PIN = { cluster: "c", class: "chat", weights: { "engine-c": 1 }, until: "2100-01-01T00:00:00Z" };
const CAPACITY_B = 100;

/** The version that is published once engine b is planned with this capacity, and no pin. */
async function publishedBy(capacityWps: number): Promise<number> {
  let tag = "";
  for (;;) {
    const reply = await fetch(`${control.adminUrl}/v1/snapshot?cluster=c&wait=${tag === "" ? 0 : 30}`, {
      headers: { "if-none-match": tag },
    });
    tag = reply.headers.get("etag")!;
    const text = await reply.text();
    if (text === "") continue;
    const { version, engines, cells } = parseClusterSnapshot(text);
    if (engines["engine-b"]!.capacityWps === capacityWps && cells.every(({ pin }) => pin === undefined)) return version;
  }
}

function capacityOf({ engines }: WhatIf, id: string): number | undefined {
  return engines.find(({ engine }) => engine === id)?.capacityWps.after;
}

describe("guidevane explain", { timeout: 60_000 }, () => {
  it("prints a table that adds up, and one sentence", async () => {
    const { code, stdout } = await run("explain", "b", "chat");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^b chat, version 1: 120\.000 requests\/s, 0\.00 % shed/);
    const rows = stdout.split("\n").filter((line) => /^engine-[abc] /.test(line));
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      // engine, weight with its %, six addends, their sum.
      const figures = row.split(/\s+/).slice(3, 10).map(Number);
      const sum = figures.slice(0, 6).reduce((total, each) => total + each, 0);
      expect(sum).toBeCloseTo(figures[6]!, 6);
    }
    expect(stdout).toMatch(/b sends chat \d+\.\d+ % to engine-b, \d+\.\d+ % to engine-c: /);
  });

  it("says of one engine why it gets what it gets", async () => {
    const { code, stdout } = await run("explain", "a", "chat", "engine-c");
    expect(code).toBe(0);
    expect(stdout).toMatch(/engine-c gets nothing of a's chat: .* it would have to be [\d.]+ ms cheaper\./);
  });

  it("prints mean latency, detour and shed share of every cluster, and what an operator holds", async () => {
    await fetch(`${control.adminUrl}/v1/pins`, { method: "POST", body: JSON.stringify(PIN) });
    const { code, stdout } = await run("explain");
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^version \d+, published because \S.*\n\ncluster +class +requests\/s +latency ms +detour ms +shed +price ms\n/,
    );
    expect(stdout).toMatch(/^b +chat +120 +[\d.]+ +1[45]\.\d +0\.00 % +[\d.]+ *$/m);
    expect(stdout).toMatch(/^\(fleet\) +250 /m);
    expect(stdout).toContain("no weights can cost less than");
    expect(stdout).toContain("operator: pinned until 2100-01-01T00:00:00.000Z: c chat to engine-c 1\n");
  });

  it("says with a cell what an operator holds of it, and nothing of other cells", async () => {
    const say = (path: string, on: boolean) =>
      fetch(`${control.adminUrl}/v1/${path}`, { method: "POST", body: JSON.stringify({ on }) });
    await say("freeze", true);
    await say("engines/engine-a/drain", true);
    const { stdout } = await run("explain", "b", "chat", "engine-b");
    expect(stdout).toMatch(/\noperator: frozen\n$/);
    expect((await run("explain", "b", "chat")).stdout).toMatch(/\noperator: frozen\noperator: engine-a is draining\n$/);
    await say("engines/engine-a/drain", false);
    await say("freeze", false);
  });

  it("prints JSON for a program", async () => {
    const { code, stdout } = await run("explain", "b", "chat", "--json");
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ cluster: "b", class: "chat" })]);
  });

  it.each([
    ["an unknown cluster", ["explain", "z", "chat"], "z is not a cluster; known: a, b, c (unknown_name)\n"],
    ["an unknown class", ["explain", "a", "talk"], "talk is not a class of a; known: chat (unknown_name)\n"],
    [
      "an unknown engine",
      ["explain", "a", "chat", "engine-z"],
      "engine-z is not an engine; known: engine-a, engine-b, engine-c (unknown_name)\n",
    ],
    ["a cluster without a class", ["explain", "a"], "class: name a class of a, or no cluster"],
    ["a version that is not kept", ["explain", "--of", "999"], "version 999 is not kept"],
  ])("refuses %s, with code 2", async (_, args, says) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(says)]);
  });
});

describe("guidevane diff", { timeout: 60_000 }, () => {
  it("says which inputs changed, and shares each move out among them so that rows add up", async () => {
    await fetch(`${control.adminUrl}/v1/pins`, { method: "POST", body: JSON.stringify({ ...PIN, weights: null }) });
    const before = await publishedBy(CAPACITY_B);
    const fleet = await exampleFleet();
    const engines = new Map(fleet.engines);
    engines.set("engine-b", { ...engines.get("engine-b")!, capacityWps: 75 });
    await control.reload({ ...fleet, engines });
    const after = await publishedBy(75);
    const { code, stdout } = await run("diff", String(before), String(after));
    expect(code).toBe(0);
    expect(stdout).toContain(`version ${before} to ${after}, published because `);
    expect(stdout).toContain("capacity: engine-b holds 75 units/s, was 100\n");
    const json = JSON.parse((await run("diff", String(before), String(after), "--json")).stdout) as Diff;
    const moved = json.weights.find(({ cluster, engine }) => cluster === "b" && engine === "engine-b")!;
    expect(moved.after).toBeLessThan(moved.before - 0.1);
    expect(moved.parts.capacity).toBeLessThan(-0.1);
    for (const { before: was, after: is, parts } of json.weights)
      expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(is - was, 9);
    // before, after, move, then the parts: those that are 0 are left blank.
    const rows = stdout.split("\n").filter((line) => /^[abc] +chat +engine-[abc] /.test(line));
    expect(rows.length).toBeGreaterThan(1);
    for (const row of rows) {
      const [was, is, whole, ...parts] = row.split(/\s+/).slice(3).map(Number);
      expect(is! - was!).toBeCloseTo(whole!, 6);
      expect(parts.reduce((sum, part) => sum + part, 0)).toBeCloseTo(whole!, 6);
    }
    await control.reload(fleet);
    await publishedBy(CAPACITY_B);
  });

  it("refuses versions that are not kept, with code 2", async () => {
    const { code, stderr } = await run("diff", "1", "999");
    expect([code, stderr]).toEqual([2, expect.stringContaining("version 999 is not kept; kept: 1 to ")]);
    expect((await run("diff", "one", "2")).stderr).toContain('from must be a version, 1 or more (got "one")');
  });
});

describe("guidevane what-if", { timeout: 60_000 }, () => {
  it("says what moves and what it costs, and publishes nothing", async () => {
    const before = await publishedBy(CAPACITY_B);
    const { code, stdout } = await run("what-if", "--drain", "engine-c");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^shed\/s +0 +[1-9]\d*(\.\d+)? +\+/m);
    expect(stdout).toMatch(/^engine-c +[\d.]+ +0 +80 +0 /m);
    expect(stdout).toMatch(/^c +chat +engine-c +100\.0 % +0\.0 % /m);
    expect(stdout).toMatch(/\d+\.\d % of the requests have keys that move; nothing was published\n$/);
    expect(await publishedBy(CAPACITY_B)).toBe(before);
  });

  it.each([
    [["--demand", "-50%"], (answer: WhatIf) => answer.after!.demandRps / answer.before!.demandRps, 0.5],
    [["--demand", "a/*=+20%"], (answer: WhatIf) => answer.after!.demandRps - answer.before!.demandRps, 18],
    [["--capacity", "engine-a=-10%"], (answer: WhatIf) => capacityOf(answer, "engine-a"), 90],
    [["--lose-region", "region-c"], (answer: WhatIf) => capacityOf(answer, "engine-c"), 0],
    [["--new-engine", "extra=engine-a@region-b"], (answer: WhatIf) => capacityOf(answer, "extra"), 100],
  ])("takes %j", async (flags, read, expected) => {
    const { code, stdout } = await run("what-if", ...flags, "--json");
    expect(code).toBe(0);
    expect(read(JSON.parse(stdout) as WhatIf)).toBeCloseTo(expected, 6);
  });

  it.each([
    [[], "what-if: name something that happens"],
    [
      ["--drain", "engine-z"],
      "guidevane: engine-z is not an engine; known: engine-a, engine-b, engine-c (unknown_name)\n",
    ],
    [
      ["--lose-region", "atlantis"],
      "no engine is in region atlantis; known: region-a, region-b, region-c (unknown_name)\n",
    ],
    [["--demand", "30%"], '--demand: must end in a percentage with its sign, such as +30% or -20% (got "30%")'],
    [["--demand", "a=+30%"], '--demand: must be ±N% or CLUSTER/CLASS=±N%, either name may be * (got "a=+30%")'],
    [["--capacity", "-120%"], "--capacity: can't fall by more than 100 %"],
    [["--new-engine", "x"], '--new-engine: must be ID=LIKE or ID=LIKE@REGION (got "x")'],
    [["--demand", "z/chat=+30%"], "z is not a cluster; known: a, b, c (unknown_name)\n"],
    [["--demand", "a/talk=+30%"], "talk is not a class; known: chat (unknown_name)\n"],
    [
      ["--capacity", "engine-z=-10%"],
      "engine-z is not an engine; known: engine-a, engine-b, engine-c (unknown_name)\n",
    ],
    [
      ["--new-engine", "x=y"],
      'changes.0.like: is not an engine of the fleet file; known: engine-a, engine-b, engine-c (got "y") (bad_what_if)\n',
    ],
  ])("refuses %j, with code 2", async (flags, says) => {
    const { code, stdout, stderr } = await run("what-if", ...flags);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(says)]);
  });
});

describe("a command that asks a control plane", () => {
  it("says so where no control plane answers", async () => {
    const code = await runProgram(["explain", "--control", "http://127.0.0.1:2"], { out: () => {}, err: () => {} });
    expect(code).toBe(1);
  });

  it.each([
    [["explain", "--control", "http://127.0.0.1:6000"], "--control", "control plane"],
    [["why", "r-1", "--gateway", "http://127.0.0.1:6000"], "--gateway", "gateway"],
  ])("says of a port that fetch blocks that it does: %j", async (args, flag, what) => {
    let said = "";
    const err = (text: string) => {
      said += text;
    };
    const code = await runProgram(args, { out: () => {}, err });
    const why = `port 6000 is blocked by the fetch standard, here and in browsers: serve the ${what}'s admin address on another one`;
    expect([code, said]).toEqual([2, `guidevane: ${flag}: ${why} (got "http://127.0.0.1:6000")\n`]);
  });

  it("names such a port that `up` came to by counting from another one", async () => {
    await expect(fetchSnapshots("http://127.0.0.1:6000", ["a"], undefined)).rejects.toThrow(
      "http://127.0.0.1:6000: port 6000 is blocked",
    );
  });
});
