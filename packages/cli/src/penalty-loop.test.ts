import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startControl } from "@guidevane/control";
import { type ClusterSnapshot, loadFleet, ManualClock, parseClusterSnapshot } from "@guidevane/core";
import { startGateway } from "@guidevane/gateway";
import { openDirectoryStore } from "@guidevane/store";
import { afterEach, expect, it } from "vitest";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const silent = { info() {}, warn() {}, error() {} };
const STEP_MS = 250;

/** An engine that answers every chat with this status, and its probes with 200. */
async function engine(statusOf: () => number): Promise<string> {
  const server: Server = createServer((request, response) => {
    request.resume();
    if (request.url === "/metrics") return response.end("");
    response.writeHead(request.method === "POST" ? statusOf() : 200, { "content-type": "application/json" });
    return response.end('{"choices":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("a failing engine is penalised, planned with what is left of it, and planned whole again when it recovers", async () => {
  const directory = await mkdtemp(join(tmpdir(), "guidevane-penalty-"));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  let status = 500;
  const urls = [await engine(() => status), ...(await Promise.all([1, 2, 3].map(() => engine(() => 200))))];
  const lines = urls.map(
    (url, at) => `  e${at}: { url: "${url}", kind: openai, region: r, models: [m], capacityWps: 10 }`,
  );
  const text = `
clusters: { east: { region: r } }
engines:
${lines.join("\n")}
demandRps: { east: { m: 16 } }
policy: { tickMs: 1000, slots: 256, solveMs: 20000 }`;
  const fleet = await loadFleet(text, "fleet.yaml", () => Promise.reject(new Error("no files here")));
  const clock = new ManualClock();
  const control = await startControl({
    ...{ fleet, clock, logger: silent, store: openDirectoryStore({ directory }) },
    ...{ adminHost: "127.0.0.1", adminPort: 0 },
  });
  cleanups.push(() => control.stop());
  const gateway = await startGateway({
    ...{ fleet, clock, logger: silent, cluster: "east", controlUrls: [control.adminUrl] },
    ...{ listen: "127.0.0.1:0", admin: "127.0.0.1:0" },
  });
  cleanups.push(() => gateway.stop(0));

  let talks = 0;
  const sent = { e0: 0, others: 0 };
  /** Four requests, then a quarter of a second. */
  const step = async (): Promise<void> => {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        fetch(`${gateway.url}/v1/chat/completions`, {
          method: "POST",
          body: JSON.stringify({ model: "m", messages: [{ role: "user", content: `talk ${talks++}` }] }),
        }),
      ),
    );
    for (const answer of answers) {
      sent[answer.headers.get("x-guidevane-engine") === "e0" ? "e0" : "others"] += 1;
      await answer.arrayBuffer();
    }
    clock.advance(STEP_MS);
  };
  const snapshot = async (): Promise<ClusterSnapshot | null> => {
    const reply = await fetch(`${control.adminUrl}/v1/snapshot?cluster=east`);
    return reply.status === 200 ? parseClusterSnapshot(await reply.text()) : null;
  };
  const penaltyAt = async (url: string): Promise<{ factor: number; evidence: Record<string, unknown> | null }> => {
    const engines = (await (await fetch(`${url}/v1/engines`)).json()) as {
      id: string;
      penalty: { factor: number; evidence: Record<string, unknown> | null };
    }[];
    return engines.find(({ id }) => id === "e0")!.penalty;
  };
  const stepUntil = async (holds: () => Promise<boolean>, mostMs: number): Promise<number> => {
    const fromMs = clock.nowMs();
    while (!(await holds())) {
      expect(clock.nowMs() - fromMs).toBeLessThan(mostMs);
      await step();
    }
    return clock.nowMs() - fromMs;
  };
  const weight = ({ cells }: ClusterSnapshot): number => cells[0]!.weights[cells[0]!.engines.indexOf("e0")] ?? 0;

  await stepUntil(async () => (await penaltyAt(gateway.adminUrl)).evidence?.state === "penalised", 15_000);
  await stepUntil(async () => ((await snapshot())?.engines.e0?.plannedFactor ?? 1) < 0.1, 30_000);
  expect((await penaltyAt(control.adminUrl)).factor).toBeLessThan(0.1);
  expect(weight((await snapshot())!)).toBeLessThan(0.06);
  // Planned with what is left of it, it is cut by the plan alone: nothing counts twice.
  await stepUntil(async () => (await penaltyAt(gateway.adminUrl)).factor > 0.3, 10_000);
  expect((await penaltyAt(gateway.adminUrl)).evidence).toMatchObject({ kind: "failing" });
  const before = { ...sent };
  for (let i = 0; i < 20; i++) await step();
  expect(sent.e0 - before.e0).toBeLessThan(8);

  status = 200;
  await stepUntil(async () => (await penaltyAt(gateway.adminUrl)).evidence === null, 90_000);
  await stepUntil(async () => (await snapshot())!.engines.e0!.plannedFactor === 1, 30_000);
  expect(weight((await snapshot())!)).toBeGreaterThan(0.15);
}, 60_000);
