import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";
import type { BenchCase, BenchGroup } from "./case.ts";

const AT_ONCE = 16;

/** A request through a gateway against the same request straight to the engine. Engine, gateway and client are a process each. */
export const route: BenchGroup = {
  name: "route",
  async open() {
    const engine = await startProcess("./stub-engine.ts");
    const gateway = await startProcess("./gateway-process.ts", engine.url);
    const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
    const cases: BenchCase[] = [];
    for (const [way, url] of [
      ["direct", engine.url],
      ["gateway", gateway.url],
    ] as const) {
      for (const [kind, stream] of [
        ["whole", false],
        ["stream-32", true],
      ] as const) {
        const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(1000) }], stream });
        const one = () => post(agent, url, body);
        const question = `the engine's own bytes, ${kind}`;
        cases.push({ name: `route/${way}/${kind}`, batch: 1, question, run: one, answer: one });
        cases.push({
          name: `route/${way}/${kind}/${AT_ONCE}-at-once/×${AT_ONCE}`,
          batch: AT_ONCE,
          question,
          run: () => Promise.all(Array.from({ length: AT_ONCE }, one)),
          answer: one,
        });
      }
    }
    const close = async () => {
      agent.destroy();
      await Promise.all([stopProcess(gateway.child), stopProcess(engine.child)]);
    };
    return { cases, truths: new Map(), missing: [], close };
  },
};

/** The answer's body. @throws Error for any status but 200, so that a fast refusal is not timed as an answer */
function post(agent: Agent, url: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const call = request(`${url}/v1/chat/completions`, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`${url} answered ${response.statusCode}: ${text}`));
      });
      response.on("error", reject);
    });
    call.on("error", reject);
    call.end(body);
  });
}

async function startProcess(file: string, ...args: string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    execArgv: ["--conditions=@guidevane/source"],
  });
  const [message] = (await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`${file} ended with ${code} before it listened`))),
  ])) as [{ url: string }];
  return { child, url: message.url };
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill();
  await exited;
}
