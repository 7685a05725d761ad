import { fileURLToPath } from "node:url";
import { answers, type Front, freePort, startOn, stopProcess } from "./front.ts";

/**
 * What Node costs at the least: `node:http` in front, undici's `dispatch` behind, the body read and parsed, nothing chosen,
 * counted or retried. How many times nginx this takes differs from machine to machine; how many times this Guidevane takes,
 * less so.
 */
export const bareNode: Front = {
  name: "bare-node",
  missing: () => null,
  async start(engine, cores) {
    const port = await freePort();
    const script = fileURLToPath(new URL("./bare-node-process.ts", import.meta.url));
    const child = startOn(cores?.front, [process.execPath, script, String(port), engine]);
    const address = `127.0.0.1:${port}`;
    await answers(address, child);
    return { address, pid: child.pid!, helpers: [], stop: () => stopProcess(child) };
  },
};
