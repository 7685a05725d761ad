import { join } from "node:path";
import { answers, type Front, freePort, isThere, startOn, stopProcess } from "./front.ts";

/** LLM routers written in Rust, from PyPI, quiet and with a hash policy as Guidevane has. */

/** The folder of their programs, such as a venv's `bin`; PATH where it is not set. */
const folder = process.env.GUIDEVANE_BENCH_ROUTERS ?? "";

export const vllmRouter: Front = router("vllm-router", (port, metricsPort, engine) => [
  ...["--host", "127.0.0.1", "--port", port, "--worker-urls", engine, "--policy", "consistent_hash"],
  ...["--prometheus-port", metricsPort, "--log-level", "warning"],
]);

export const smg: Front = router("smg", (port, metricsPort, engine) => [
  ...["launch", "--host", "127.0.0.1", "--port", port, "--worker-urls", engine, "--policy", "consistent_hashing"],
  ...["--prometheus-port", metricsPort, "--log-level", "warn"],
  // Without these it asks a hub for a tokenizer and refuses streams past a count.
  ...["--disable-tokenizer-autoload", "--max-concurrent-requests", "0"],
]);

function router(name: string, args: (port: string, metricsPort: string, engine: string) => string[]): Front {
  const program = join(folder, name);
  return {
    name,
    missing: () =>
      isThere(program, ["--help"]) ? null : `${name} is not here (pip install ${name}; GUIDEVANE_BENCH_ROUTERS)`,
    async start(engine, cores) {
      const [port, metricsPort] = [await freePort(), await freePort()];
      const command = [program, ...args(String(port), String(metricsPort), `http://${engine}`)];
      const child = startOn(cores?.front, command, { RUST_LOG: "warn" });
      const address = `127.0.0.1:${port}`;
      await answers(address, child);
      return { address, pid: child.pid!, helpers: [], stop: () => stopProcess(child) };
    },
  };
}
