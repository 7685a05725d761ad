import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent, createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually, type Gateway, MODEL, Whole } from "./whole.ts";

/** What thousands of long streams cost a gateway process. */

const STREAMS = 2000;
const PROMPT_BYTES = 20_000;
const MOST_MB = 1024;

const whole = new Whole();
/** Streams that have begun, as the engine has them. */
const running: ServerResponse[] = [];
let gateway: Gateway;

beforeAll(async () => {
  const engine = createServer((asked, response) => {
    asked.resume();
    asked.on("end", () => {
      if (asked.method !== "POST") return void response.end("ok");
      response.writeHead(200, { "content-type": "text/event-stream" });
      running.push(response);
      say(response, "one");
    });
  });
  engine.listen(0, "127.0.0.1");
  await once(engine, "listening");
  whole.onStop(async () => {
    engine.closeAllConnections();
    engine.close();
  });
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  whole.writeFleet({ one: { url, capacityWps: 1_000_000 } });
  // Nothing answers there: it routes by its fleet file.
  gateway = await whole.gateway("http://127.0.0.1:9", "a", "--threads", "2");
}, 30_000);
afterAll(() => whole.stop());

function say(response: ServerResponse, content: string, finish: string | null = null): void {
  response.write(
    `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`,
  );
}

/** Resolves with its status and text when it is over. */
function stream(agent: Agent, talk: number): Promise<{ status: number | undefined; text: string }> {
  const messages = [{ role: "user", content: `talk ${talk} `.padEnd(PROMPT_BYTES, "x") }];
  const sent = request(`${gateway.url}/v1/chat/completions`, { method: "POST", agent });
  sent.end(JSON.stringify({ model: MODEL, stream: true, messages }));
  return new Promise((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
      answer.on("error", reject);
    });
  });
}

/** Asks as an orchestrator does, from a thread of its own, for this one is busy; tells the longest wait, ms. */
const PROBER = `
  const { parentPort, workerData } = require("node:worker_threads");
  let slowestMs = 0;
  let isOver = false;
  parentPort.once("message", () => { isOver = true; });
  (async () => {
    while (!isOver) {
      const fromMs = performance.now();
      if ((await fetch(workerData)).status !== 200) throw new Error("not healthy");
      slowestMs = Math.max(slowestMs, performance.now() - fromMs);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    parentPort.postMessage(slowestMs);
  })();
`;

/** Memory of the gateway process that is in use, MB. */
function residentMb(): number {
  const status = readFileSync(`/proc/${gateway.program.child.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) / 1024;
}

describe("two thousand streams at a time", () => {
  it.skipIf(process.platform !== "linux")(
    "B162: fit into a gigabyte, whose use stays level while they run, and leave probes their answers",
    async () => {
      const agent = new Agent({ keepAlive: false });
      const prober = new Worker(PROBER, { eval: true, workerData: `${gateway.adminUrl}/healthz` });
      const answers = Array.from({ length: STREAMS }, (_, talk) => stream(agent, talk));
      await eventually(async () => running.length === STREAMS, 60_000);
      const beganMb = residentMb();
      for (let round = 0; round < 20; round++) {
        for (const response of running) say(response, `part ${round} `);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      const ranMb = residentMb();
      for (const response of running) {
        say(response, "", "stop");
        response.end("data: [DONE]\n\n");
      }
      const ended = await Promise.all(answers);
      prober.postMessage("enough");
      const [slowestMs] = (await once(prober, "message")) as [number];
      expect(new Set(ended.map(({ status }) => status))).toEqual(new Set([200]));
      expect(ended.filter(({ text }) => text.includes("part 19") && text.endsWith("data: [DONE]\n\n"))).toHaveLength(
        STREAMS,
      );
      expect(ranMb).toBeLessThan(MOST_MB);
      expect(ranMb - beganMb).toBeLessThan(MOST_MB / 10);
      expect(slowestMs).toBeLessThan(1000);
    },
    120_000,
  );
});
