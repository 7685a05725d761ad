import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";

/**
 * An address that drops what connects to it, as that of a machine without power: a process that listens with the shortest
 * queue, is stopped, and has its queue full.
 */
export class SilentPort {
  readonly url: string;
  readonly #stop: () => Promise<void>;

  private constructor(port: number, stop: () => Promise<void>) {
    this.url = `http://127.0.0.1:${port}`;
    this.#stop = stop;
  }

  static async start(): Promise<SilentPort> {
    const program = `const s = require("node:net").createServer();
      s.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => console.log(s.address().port));`;
    const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
    const [text] = (await once(child.stdout, "data")) as [Buffer];
    const port = Number(text.toString());
    child.kill("SIGSTOP");
    const queued = await fillQueue(port);
    return new SilentPort(port, async () => {
      for (const socket of queued) socket.destroy();
      child.kill("SIGKILL");
      await once(child, "exit");
    });
  }

  stop(): Promise<void> {
    return this.#stop();
  }
}

/** Connects until one is not answered any more. */
async function fillQueue(port: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    sockets.push(socket);
    const isSilent = new Promise<boolean>((resolve) => {
      const timer = setTimeout(resolve, SILENT_MS, true);
      socket.once("connect", () => {
        clearTimeout(timer);
        resolve(false);
      });
    });
    if (await isSilent) return sockets;
  }
}

/** On one machine a connection that is answered at all is answered in far less. */
const SILENT_MS = 500;
