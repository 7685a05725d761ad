import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { type RunningControl, startControl } from "@guidevane/control";
import { type Fleet, loadFleet } from "@guidevane/core";
import { openDirectoryStore } from "@guidevane/store";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "./program.ts";
import { DEFAULT_FLEET } from "./up-fleet.ts";

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
    const pin = { cluster: "c", class: "chat", weights: { "engine-c": 1 }, until: "2100-01-01T00:00:00Z" };
    await fetch(`${control.adminUrl}/v1/pins`, { method: "POST", body: JSON.stringify(pin) });
    const { code, stdout } = await run("explain");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^version \d+\n\ncluster +class +requests\/s +latency ms +detour ms +shed +price ms\n/);
    expect(stdout).toMatch(/^b +120 +[\d.]+ +1[45]\.\d +0\.00 %/m);
    expect(stdout).toMatch(/^\(fleet\) +250 /m);
    expect(stdout).toContain("no weights can cost less than");
    expect(stdout).toContain("operator: pinned until 2100-01-01T00:00:00.000Z: c chat to engine-c 1\n");
  });

  it("prints JSON for a program", async () => {
    const { code, stdout } = await run("explain", "b", "chat", "--json");
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ cluster: "b", class: "chat" })]);
  });

  it.each([
    ["an unknown cluster", ["explain", "z", "chat"], "z is not a cluster; known: a, b, c"],
    ["a cluster without a class", ["explain", "a"], "class: name a class of a, or no cluster"],
    ["a version that is not kept", ["explain", "--of", "999"], "version 999 is not kept"],
  ])("refuses %s, with code 2", async (_, args, says) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(says)]);
  });

  it("says so where no control plane answers", async () => {
    const code = await runProgram(["explain", "--control", "http://127.0.0.1:9"], { out: () => {}, err: () => {} });
    expect(code).toBe(1);
  });
});
