import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { takenPorts } from "./up-ports.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

/**
 * A port with all that `up` counts from it free. Below 32,768, where Linux begins to give ports to outgoing connections:
 * one of those could take a port between this look and its use.
 */
async function freeBase(): Promise<number> {
  for (let turn = 0; turn < PLACES; turn++) {
    const port = FIRST_PORT + ((process.pid + turn) % PLACES) * PORTS_NEEDED;
    const offsets = (...list: number[]) => new Map(list.map((offset) => [String(offset), port + offset]));
    const taken = await takenPorts({
      gateways: offsets(0, 1, 2),
      gatewayAdmins: offsets(100, 101, 102),
      engines: offsets(200, 201, 202),
      control: port + 90,
    });
    if (taken.length === 0) return port;
  }
  throw new Error("no free range of ports");
}

const FIRST_PORT = 10_000;
const PORTS_NEEDED = 300;
const PLACES = 30;

interface Up {
  readonly process: ChildProcess;
  readonly port: number;
  /** Resolves with all that it has printed once that contains `text`; rejects when it ends before. */
  until(text: string): Promise<string>;
  readonly ended: Promise<{ code: number | null; stderr: string }>;
}

const started: Up[] = [];

async function startUp(...args: string[]): Promise<Up> {
  const port = await freeBase();
  // A group of its own, as a terminal gives it.
  const child = spawn(
    process.execPath,
    ["--conditions=@guidevane/source", MAIN, "up", "--port", String(port), ...args],
    { detached: true, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, LOG_LEVEL: "error" } },
  );
  let stdout = "";
  let stderr = "";
  const waiting: { text: string; resolve: (all: string) => void; reject: (error: Error) => void }[] = [];
  const look = () => {
    for (const each of waiting) if (stdout.includes(each.text)) each.resolve(stdout);
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    look();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<{ code: number | null; stderr: string }>((resolve) => {
    child.once("close", (code) => {
      for (const each of waiting) each.reject(new Error(`up ended with ${code}: ${stdout}${stderr}`));
      resolve({ code, stderr });
    });
  });
  const until = (text: string) =>
    new Promise<string>((resolve, reject) => {
      waiting.push({ text, resolve, reject });
      look();
    });
  const up = { process: child, port, until, ended };
  started.push(up);
  return up;
}

afterEach(() => {
  for (const up of started.splice(0)) killGroup(up);
});

/** Whatever a failed test has left; normally nothing. */
function killGroup(up: Up): void {
  try {
    process.kill(-up.process.pid!, "SIGKILL");
  } catch (error) {
    expect((error as NodeJS.ErrnoException).code).toBe("ESRCH");
  }
}

/** Processes of up's group, itself included: pid and command line. */
function groupOf(up: Up): { pid: number; args: string }[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,pgid=,args="], { encoding: "utf8" }).trim().split("\n");
  return lines
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line)!)
    .filter((match) => Number(match[2]) === up.process.pid)
    .map((match) => ({ pid: Number(match[1]), args: match[3]! }));
}

function childOf(up: Up, command: string): number {
  return groupOf(up).find(({ args }) => args.includes(`main.ts ${command} `))!.pid;
}

/** Where the run keeps its fleet file, its store and the gateways' snapshots. */
function folderOf(up: Up): string {
  return /--fleet (\S+)\/fleet\.yaml/.exec(groupOf(up).find(({ args }) => args.includes(" control "))!.args)![1]!;
}

/** Resolves when no process of the group is left. */
async function untilGone(up: Up): Promise<void> {
  while (groupOf(up).length > 0) await new Promise((resolve) => setImmediate(resolve));
}

describe.skipIf(process.platform === "win32")("guidevane up (needs process groups)", { timeout: 120_000 }, () => {
  it("brings up the three clusters, shows where traffic goes, and leaves nothing after Ctrl-C", async () => {
    const up = await startUp();
    const text = await up.until("Ctrl-C ends it.");
    // Itself, engines, control, three gateways, the driver.
    expect(groupOf(up)).toHaveLength(7);
    for (const cluster of ["a", "b", "c"]) expect(text).toMatch(new RegExp(`^${cluster} +chat +[\\d.]+ +`, "m"));
    expect(text).toMatch(
      /^optimum +\d+ ms mean latency, round trips included; \d+ ± \d+ ms measured over [\d,]+ requests/m,
    );
    expect(text).toContain("nearest-only      unbounded: engine-b would stand at 120 %");
    expect(text).toMatch(/^certificate +within \d+\.\d\d % of the best/m);
    expect(text).toMatch(/^router +(native|TypeScript \(no native router was loaded\))$/m);

    const [, url, body] = /curl -N -i (\S+) -H 'content-type: application\/json' -d '(.*)'$/m.exec(text)!;
    expect(url).toBe(`http://127.0.0.1:${up.port + 1}/v1/chat/completions`);
    const ask = () => fetch(url!, { method: "POST", body: body!, headers: { "content-type": "application/json" } });
    let answer = await ask();
    // At 90 % load chance fills the engines now and then, the more so on a busy machine, and a new conversation is shed.
    for (let again = 0; answer.status === 503 && again < 10; again++) {
      expect(await answer.text()).toContain('"shed"');
      await delay(1000 * Number(answer.headers.get("retry-after")));
      answer = await ask();
    }
    expect(answer.status).toBe(200);
    expect(["engine-a", "engine-b", "engine-c"]).toContain(answer.headers.get("x-guidevane-engine"));
    expect(await answer.text()).toMatch(/data: \[DONE\]\n\n$/);

    const folder = folderOf(up);
    expect(existsSync(`${folder}/store/publications`)).toBe(true);
    const before = performance.now();
    process.kill(-up.process.pid!, "SIGINT");
    expect((await up.ended).code).toBe(0);
    expect(performance.now() - before).toBeLessThan(6000);
    expect(groupOf(up)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  it("drives nothing with --demand none, and shows the plan, as JSON if asked", async () => {
    const up = await startUp("--demand", "none", "--json");
    const shown = JSON.parse(await up.until("}\n"));
    expect(groupOf(up)).toHaveLength(6);
    expect(shown).toMatchObject({ measuredMs: null, answered: 0, gateways: { a: `http://127.0.0.1:${up.port}` } });
    expect(shown.nearestOnly.over).toMatchObject([{ engine: "engine-b" }]);
    const b = shown.cells.find((cell: { cluster: string }) => cell.cluster === "b");
    // Planned from the fleet file's demand: 30.46 of 120 go to engine-c.
    expect(b.engines["engine-c"]).toMatchObject({ share: null });
    expect(Math.abs(b.engines["engine-c"].weight - 30.4667 / 120)).toBeLessThan(0.01);
    process.kill(up.process.pid!, "SIGTERM");
    expect((await up.ended).code).toBe(0);
    expect(groupOf(up)).toEqual([]);
  });

  it("ends everything with exit code 1 when a child dies, and says which", async () => {
    const up = await startUp("--demand", "none");
    await up.until("Ctrl-C ends it.");
    process.kill(childOf(up, "control"), "SIGKILL");
    const { code, stderr } = await up.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("control ended by itself (SIGKILL)");
    expect(groupOf(up)).toEqual([]);
  });

  it("leaves no child behind when it is killed itself", async () => {
    const up = await startUp("--demand", "none");
    await up.until("Ctrl-C ends it.");
    const folder = folderOf(up);
    process.kill(up.process.pid!, "SIGKILL");
    await untilGone(up);
    // Nobody is left to remove it.
    rmSync(folder, { recursive: true });
  });
});
