import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runProgram } from "./program.ts";
import { DEFAULT_FLEET } from "./up-fleet.ts";

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(args: readonly string[]): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  const code = await runProgram(args, {
    out: (text) => {
      stdout += text;
    },
    err: (text) => {
      stderr += text;
    },
  });
  return { code, stdout, stderr };
}

/** The same in a process of its own, where the exit code is the process's. */
function runProcess(args: readonly string[], flags: readonly string[] = []): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { ...process.env, LOG_LEVEL: "warn" };
    const all = [...flags, "--conditions=@guidevane/source", MAIN, ...args];
    execFile(process.execPath, all, { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

/** A module that has Node name each module that it loads. */
const LOADED = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({ load: (url, context, next) => (console.error("loaded " + url), next(url, context)) });
`)}`;

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "guidevane-test-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeAll(() => {
  vi.stubEnv("GUIDEVANE_ADMIN_TOKEN", "");
  vi.stubEnv("LOG_LEVEL", "silent");
});
afterAll(() => vi.unstubAllEnvs());

const PROFILE = join(DEFAULT_FLEET, "..", "profile.yaml");
const CONTROL = ["control", "--fleet", DEFAULT_FLEET, "--store", "/tmp/unused"];
const GATEWAY = ["gateway", "--fleet", DEFAULT_FLEET, "--listen", "127.0.0.1:0", "--state", "/tmp/unused"];

describe("the program", { timeout: 60_000 }, () => {
  it("is a process that exits with the command's code", async () => {
    const [help, bad] = await Promise.all([runProcess(["--help"]), runProcess(["fleet", "check", "/nowhere.yaml"])]);
    expect([help.code, help.stderr]).toEqual([0, ""]);
    expect(help.stdout).toContain("Usage: guidevane");
    expect([bad.code, bad.stdout]).toEqual([2, ""]);
    expect(bad.stderr).toContain("/nowhere.yaml");
  });

  it("shows its commands, and none that is not there yet", async () => {
    const { code, stdout } = await run(["--help"]);
    expect(code).toBe(0);
    for (const command of [
      "up",
      "control",
      "gateway",
      "emulate",
      "drive",
      "fleet",
      "solve",
      "explain",
      "diff",
      "what-if",
      "why",
      "profile",
      "simulate",
    ])
      expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, "m"));
    expect(stdout).not.toMatch(/^ {2}doctor\b/m);
  });

  it("loads of its commands the one that is asked for, and none to say its version", async () => {
    const loaded = async (...args: string[]): Promise<readonly string[]> => {
      const { stderr } = await runProcess(args, ["--import", LOADED]);
      return [...new Set([...stderr.matchAll(/^loaded .*\/(command-[a-z-]+)\.ts$/gm)].map(([, name]) => name!))].sort();
    };
    expect(await loaded("--version")).toEqual([]);
    expect(await loaded("what-if", "--help")).toEqual(["command-what-if"]);
    expect(await loaded("--help")).toHaveLength(14);
  });

  it.each([
    ["nothing at all", [], "Usage: guidevane"],
    ["a command that is not there", ["doctor", "x"], "unknown command 'doctor'"],
    ["a flag that is not there", ["up", "--fast"], "unknown option '--fast'"],
    ["a flag that is missing", ["control"], "required option '--fleet <file>'"],
    [
      "a fleet file that is not there",
      ["fleet", "check", "/nowhere.yaml"],
      'can\'t read "/nowhere.yaml" (no such file)',
    ],
    ["a port that can't be", ["up", "--port", "70000"], '--port: must be a port, 0 to 65535 (got "70000")'],
    ["a demand that can't be", ["up", "--demand", "lots"], '--demand: must be talk or none (got "lots")'],
    ["a scale", ["up", "--scale", "1.5"], '--scale: must be above 0 and at most 1 (got "1.5")'],
    ["threads", ["up", "--threads", "0"], '--threads: must be 1 to 256 (got "0")'],
    [
      "a kind that nobody emulates",
      ["emulate", "--kind", "pool"],
      "--kind: must be vllm, sglang, tgi, trtllm, triton or",
    ],
    [
      "an emulator without a port",
      ["emulate", "--model", "m", "--profile", PROFILE],
      "--port: required without --fleet",
    ],
    [
      "an admin address without a port",
      [...CONTROL, "--admin", "localhost"],
      '--admin: must be HOST:PORT (got "localhost")',
    ],
    ["control open to others without a token", [...CONTROL, "--admin", "0.0.0.0:0"], "needs GUIDEVANE_ADMIN_TOKEN"],
    [
      "a gateway open to others without a token",
      [...GATEWAY, "--cluster", "a", "--admin", "0.0.0.0:0", "--control", "http://127.0.0.1:1"],
      "needs GUIDEVANE_ADMIN_TOKEN",
    ],
    [
      "a gateway of no cluster",
      [...GATEWAY, "--cluster", "z", "--admin", "127.0.0.1:0", "--control", "http://127.0.0.1:1"],
      '--cluster: is not a cluster of the fleet file; known: a, b, c (got "z")',
    ],
    [
      "a control plane that is no URL",
      [...GATEWAY, "--cluster", "a", "--admin", "127.0.0.1:0", "--control", "here"],
      '--control: must be an http or https URL (got "here")',
    ],
    ["a driver of no cluster", ["drive", "--fleet", DEFAULT_FLEET, "--gateway", "z=http://127.0.0.1:1"], '(got "z")'],
  ])("exits 2 on %s, naming it", async (_what, args, text) => {
    const { code, stderr } = await run(args);
    expect(stderr).toContain(text);
    expect(code).toBe(2);
  });

  it("prints the JSON Schema of the fleet file", async () => {
    const { code, stdout } = await runProcess(["fleet", "schema"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ type: "object", required: ["clusters"], additionalProperties: false });
  });

  it("names each fault of a fleet file on one line, with path and value", async () => {
    const file = join(folder, "bad.yaml");
    await writeFile(
      file,
      [
        "clusters: { a: { region: r } }",
        "engines:",
        '  e: { url: "http://127.0.0.1:1", region: r, models: [m], capacityWps: -80 }',
        "policy: { tick: 5, headroom: 0.06 }",
        "colour: red",
      ].join("\n"),
    );
    const { code, stderr } = await run(["fleet", "check", file]);
    expect(code).toBe(2);
    const lines = stderr.trim().split("\n");
    expect(lines).toHaveLength(4);
    expect(stderr).toMatch(/^ {2}engines\.e\.capacityWps: .*\(got -80\)$/m);
    expect(stderr).toMatch(/^ {2}policy\.tick: .*`tickMs` \(got 5\)$/m);
    expect(stderr).toMatch(/^ {2}colour: .*\(got "red"\)$/m);
  });

  it.each([
    ["http://10.0.0.1:8000", "is on http and loopback"],
    ["https://127.0.0.1:8000", "is on http and loopback"],
    ["http://127.0.0.1:8000/prefix", "has no path prefix"],
  ])("does not emulate an engine at %s, naming it", async (url, why) => {
    const file = join(folder, "far.yaml");
    await writeFile(
      file,
      `clusters: { a: { region: r } }\nengines: { e: { url: "${url}", region: r, models: [m], capacityWps: 1 } }\n`,
    );
    const { code, stderr } = await run(["emulate", "--fleet", file]);
    expect(stderr).toContain(`engines.e.url: an emulated engine ${why} (got "${url}")`);
    expect(code).toBe(2);
  });

  it("checks the fleet that it ships, as a table and as JSON", async () => {
    const table = await run(["fleet", "check", DEFAULT_FLEET]);
    expect(table.code).toBe(0);
    expect(table.stdout.trim().split("\n").at(-1)).toBe("ok");
    const json = await run(["fleet", "check", DEFAULT_FLEET, "--json"]);
    const summary = JSON.parse(json.stdout);
    expect(summary.engines.map((each: { capacityWps: number }) => each.capacityWps)).toEqual([100, 100, 80]);
    expect(summary.classes).toMatchObject([{ name: "chat", work: 1, demandRps: 250 }]);
    expect(summary.warnings).toEqual([]);
  });

  it("says nothing when nobody reads what it prints any more", async () => {
    const child = spawn(process.execPath, ["--conditions=@guidevane/source", MAIN, "fleet", "check", DEFAULT_FLEET]);
    child.stdout.destroy();
    let stderr = "";
    child.stderr.on("data", (text: Buffer) => {
      stderr += text.toString();
    });
    await once(child, "close");
    expect(stderr).toBe("");
  });

  it("exits 1 and names the port when one of its ports is taken", async () => {
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    });
    // The first gateway's port, unless that leaves no room above it: then an engine's, far below.
    const base = port < 60_000 ? port : port - 200;
    const { code, stderr } = await runProcess(["up", "--port", String(base)]);
    server.close();
    expect(stderr).toContain(String(port));
    expect(stderr).toContain("in use by another program");
    expect(code).toBe(1);
  });

  it("exits 1 and names the address when an emulator's port is taken", async () => {
    const server = createServer();
    const port = await new Promise<number>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    });
    const { code, stderr } = await runProcess([
      "emulate",
      "--port",
      String(port),
      "--model",
      "m",
      "--profile",
      PROFILE,
    ]);
    server.close();
    expect(stderr).toContain(`127.0.0.1:${port} is in use by another program`);
    expect(code).toBe(1);
  });
});
