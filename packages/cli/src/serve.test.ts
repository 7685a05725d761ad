import { type ChildProcess, spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { DEFAULT_FLEET } from "./up-fleet.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));

interface Serving {
  readonly process: ChildProcess;
  /** The first log entry that has this field; rejects when the process ends without one. */
  logged(field: string): Promise<Record<string, unknown>>;
  readonly ended: Promise<{ code: number | null; stdout: string }>;
}

const serving: Serving[] = [];
const folders: string[] = [];

afterEach(async () => {
  for (const each of serving.splice(0)) {
    each.process.kill("SIGKILL");
    await each.ended;
  }
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

function serve(...args: string[]): Serving {
  const child = spawn(process.execPath, ["--conditions=@guidevane/source", MAIN, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, LOG_LEVEL: "info" },
  });
  let stdout = "";
  let stderr = "";
  const entries: Record<string, unknown>[] = [];
  const waiting: {
    field: string;
    resolve: (entry: Record<string, unknown>) => void;
    reject: (error: Error) => void;
  }[] = [];
  const look = () => {
    for (const { field, resolve } of waiting) {
      const entry = entries.find((each) => field in each);
      if (entry !== undefined) resolve(entry);
    }
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  let rest = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (line.startsWith("{")) entries.push(JSON.parse(line));
    look();
  });
  const ended = new Promise<{ code: number | null; stdout: string }>((resolve) => {
    child.once("close", (code) => {
      for (const each of waiting) each.reject(new Error(`ended with ${code}: ${stderr}`));
      resolve({ code, stdout });
    });
  });
  const logged = (field: string) =>
    new Promise<Record<string, unknown>>((resolve, reject) => {
      waiting.push({ field, resolve, reject });
      look();
    });
  const started = { process: child, logged, ended };
  serving.push(started);
  return started;
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "guidevane-test-"));
  folders.push(made);
  return made;
}

const PROFILE = join(DEFAULT_FLEET, "..", "profile.yaml");

describe("a command that serves", { timeout: 60_000 }, () => {
  it("emulate answers as an engine, is driven, and ends well on SIGTERM", async () => {
    const engine = serve("emulate", "--port", "0", "--model", "demo", "--profile", PROFILE, "--seed", "3");
    const { url } = await engine.logged("url");
    const models = await (await fetch(`${url}/v1/models`)).json();
    expect(models).toMatchObject({ data: [{ id: "demo" }] });

    const drive = serve("drive", "--fleet", DEFAULT_FLEET, "--gateway", `a=${url}`, "--seconds", "1", "--json");
    const { code, stdout } = await drive.ended;
    expect(code).toBe(0);
    const reports = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const answered = reports.reduce((sum, each) => sum + each.cells[0].answered, 0);
    // 90 requests/s for a second, less what a busy machine did not get to send.
    expect(answered).toBeGreaterThan(10);
    expect(reports.at(-1).cells[0]).toMatchObject({ cluster: "a", class: "chat", failures: {} });

    engine.process.kill("SIGTERM");
    expect((await engine.ended).code).toBe(0);
  });

  it("control and a gateway listen on free ports, find each other, and end well on SIGINT and SIGTERM", async () => {
    const control = serve("control", "--fleet", DEFAULT_FLEET, "--admin", "127.0.0.1:0", "--store", await folder());
    const { adminUrl } = await control.logged("adminUrl");
    expect((await fetch(`${adminUrl}/healthz`)).status).toBe(200);

    const gateway = serve(
      ...[
        "gateway",
        "--cluster",
        "b",
        "--fleet",
        DEFAULT_FLEET,
        "--control",
        String(adminUrl),
        "--state",
        await folder(),
      ],
      ...["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--unready-ms", "2000"],
    );
    const { url, adminUrl: gatewayAdminUrl } = await gateway.logged("url");
    expect(await (await fetch(`${url}/v1/models`)).json()).toMatchObject({ data: [{ id: "demo" }] });
    // "snapshot in use": the control plane's, taken over.
    await gateway.logged("tag");

    gateway.process.kill("SIGTERM");
    await gateway.logged("why");
    // Balancers see that it ends before connections are refused.
    expect((await fetch(`${gatewayAdminUrl}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/v1/models`)).status).toBe(200);
    expect((await gateway.ended).code).toBe(0);
    control.process.kill("SIGINT");
    expect((await control.ended).code).toBe(0);
  });

  it("control takes a fleet file that changes, and goes on with SIGHUP", async () => {
    const here = await folder();
    await cp(join(DEFAULT_FLEET, ".."), here, { recursive: true });
    const fleet = join(here, "fleet.yaml");
    const control = serve("control", "--fleet", fleet, "--admin", "127.0.0.1:0", "--store", await folder());
    const { adminUrl } = await control.logged("adminUrl");
    const clusters = async () => (await (await fetch(`${adminUrl}/v1/clusters`)).json()) as { name: string }[];
    const before = (await clusters()).length;
    const text = await readFile(fleet, "utf8");
    await writeFile(fleet, text.replace(/^clusters:/m, "clusters:\n  added: { region: elsewhere }"));
    control.process.kill("SIGHUP");
    expect(await control.logged("why")).toMatchObject({ msg: "took the fleet file" });
    expect((await clusters()).length).toBe(before + 1);
    control.process.kill("SIGTERM");
    expect((await control.ended).code).toBe(0);
  });
});
