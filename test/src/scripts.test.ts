import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { root } from "./repository.ts";

interface Lockfile {
  readonly packages: Readonly<Record<string, { version?: string; integrity?: string; optional?: boolean }>>;
}

interface Scripts {
  staleness(wanted: Lockfile, present: Lockfile | undefined): string | undefined;
  isEnough(version: string): boolean;
  withLock<T>(path: string, task: () => Promise<T>): Promise<T>;
}

const scripts = Object.assign(
  {},
  ...(await Promise.all(["install", "find-node", "lock"].map((name) => import(url(`${name}.mjs`))))),
) as Scripts;

const folder = mkdtempSync(join(tmpdir(), "guidevane-scripts-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("installing", () => {
  const wanted: Lockfile = {
    packages: {
      "": { version: "0.1.0" },
      "node_modules/a": { version: "1.0.0", integrity: "sha512-a" },
      "node_modules/other-platform": { version: "1.0.0", integrity: "sha512-o", optional: true },
    },
  };
  const a = { "node_modules/a": { version: "1.0.0", integrity: "sha512-a" } };

  it("is not needed when all that the lockfile wants is there, other platforms' packages aside", () => {
    expect(scripts.staleness(wanted, { packages: a })).toBeUndefined();
  });

  it.each<[string, Lockfile | undefined]>([
    ["nothing is installed yet", undefined],
    ["node_modules/a is new", { packages: {} }],
    ["node_modules/a has changed", { packages: { "node_modules/a": { version: "0.9.0", integrity: "sha512-a" } } }],
    ["node_modules/a has changed", { packages: { "node_modules/a": { version: "1.0.0", integrity: "sha512-b" } } }],
    ["node_modules/b is no longer wanted", { packages: { ...a, "node_modules/b": { version: "1.0.0" } } }],
  ])("is needed when %s", (reason, present) => {
    expect(scripts.staleness(wanted, present)).toBe(reason);
  });
});

describe("the Node that is used", () => {
  it.each([
    ["18.20.0", false],
    ["20.20.2", false],
    ["22.18.9", false],
    ["22.19.0", true],
    ["23.0.0", true],
    ["24.21.0", true],
  ])("%s is new enough: %s", (version, enough) => {
    expect(scripts.isEnough(version)).toBe(enough);
  });
});

describe("the lock of a build", () => {
  it("lets one in at a time, and every one in the end", async () => {
    const path = join(folder, "one", "lock");
    let inside = 0;
    let most = 0;
    const task = async () => {
      inside++;
      most = Math.max(most, inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside--;
    };
    await Promise.all([1, 2, 3].map(() => scripts.withLock(path, task)));
    expect([most, inside]).toEqual([1, 0]);
    expect(existsSync(path)).toBe(false);
  });

  it("is given back when the task fails", async () => {
    const path = join(folder, "failing");
    await expect(scripts.withLock(path, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await scripts.withLock(path, async () => "in")).toBe("in");
  });

  it("is taken over from a process that has ended", async () => {
    const ended = spawn(process.execPath, ["-e", ""]);
    await once(ended, "exit");
    const path = join(folder, "dead");
    writeFileSync(path, String(ended.pid));
    expect(await scripts.withLock(path, async () => "in")).toBe("in");
  });

  it("is taken over when nobody has touched it for long, whoever has that process id now", async () => {
    const path = join(folder, "old");
    writeFileSync(path, String(process.pid));
    const longAgo = new Date(Date.now() - 60_000);
    utimesSync(path, longAgo, longAgo);
    expect(await scripts.withLock(path, async () => "in")).toBe("in");
  });
});

describe("starting a program", () => {
  const inner = (code: string) => `
    import { start } from ${JSON.stringify(url("start.mjs"))};
    const end = await start(process.execPath, ["-e", ${JSON.stringify(code)}], {});
    console.log(JSON.stringify(end));`;

  it("reports its exit code", async () => {
    const outer = run(inner("process.exit(7)"));
    expect(await outputOf(outer)).toBe('{"code":7,"signal":null}');
  });

  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("hands %s on and waits for its own end", async (signal) => {
    const code = `
      process.on("${signal}", () => { console.log("got it"); process.exit(5); });
      setInterval(() => {}, 1000);
      console.log("up");`;
    const outer = run(inner(code));
    const [first] = (await once(outer.stdout!, "data")) as [Buffer];
    expect(String(first).trim()).toBe("up");
    outer.kill(signal);
    expect(await outputOf(outer)).toBe('got it\n{"code":5,"signal":null}');
  });
});

describe("run.mjs", () => {
  it("refuses a command that it does not know, with exit 2", async () => {
    const child = spawn(process.execPath, [join(root, "scripts/run.mjs"), "fly"], { stdio: "pipe" });
    const [error, [code]] = await Promise.all([text(child.stderr!), once(child, "exit")]);
    expect(error).toBe('run.mjs: no command "fly"; there are up, test, fuzz, stress, build\n');
    expect(code).toBe(2);
  });
});

function url(name: string): string {
  return pathToFileURL(join(root, "scripts", name)).href;
}

function run(code: string): ChildProcess {
  return spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
}

async function outputOf(child: ChildProcess): Promise<string> {
  return (await text(child.stdout!)).trim();
}

async function text(stream: NodeJS.ReadableStream): Promise<string> {
  let all = "";
  for await (const chunk of stream) all += String(chunk);
  return all;
}
