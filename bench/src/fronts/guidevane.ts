import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { answers, type Front, freePort, startOn, stopProcess } from "./front.ts";

/** The program as it is run, on one thread for the one core: a gateway that routes by what a control plane beside it publishes. */
export const guidevane: Front = front("guidevane", ["--threads", "1"]);

const main = fileURLToPath(new URL("../../../packages/cli/src/main.ts", import.meta.url));

/** @param gatewayArgs more arguments of `guidevane gateway` */
export function front(name: string, gatewayArgs: readonly string[]): Front {
  return {
    name,
    missing: () => null,
    async start(engine, cores) {
      const folder = mkdtempSync(join(tmpdir(), "guidevane-bench-"));
      const fleet = join(folder, "fleet.json");
      writeFileSync(fleet, JSON.stringify(fleetOf(engine)));
      const [port, admin, control] = [await freePort(), await freePort(), await freePort()];
      const guidevane = (...args: string[]) => [process.execPath, "--conditions=@guidevane/source", main, ...args];
      const listen = (at: number) => `127.0.0.1:${at}`;
      const quiet = { LOG_LEVEL: "error" };
      const plane = startOn(
        cores?.rest,
        guidevane("control", "--fleet", fleet, "--admin", listen(control), "--store", join(folder, "store")),
        quiet,
      );
      const gateway = startOn(
        cores?.front,
        guidevane(
          ...["gateway", "--cluster", "c", "--fleet", fleet, "--listen", listen(port), "--admin", listen(admin)],
          ...["--control", `http://${listen(control)}`, "--state", join(folder, "state"), ...gatewayArgs],
        ),
        quiet,
      );
      await answers(listen(port), gateway);
      return {
        address: listen(port),
        pid: gateway.pid!,
        helpers: [plane.pid!],
        async stop() {
          await Promise.all([gateway, plane].map(stopProcess));
          rmSync(folder, { recursive: true });
        },
      };
    },
  };
}

/** One engine with more capacity than any machine that this runs on can ask of it: nothing is shed. */
function fleetOf(engine: string): unknown {
  return {
    clusters: { c: { region: "r" } },
    engines: {
      e0: { url: `http://${engine}`, region: "r", models: ["m"], kind: "openai", capacityWps: 1e6 },
    },
  };
}
