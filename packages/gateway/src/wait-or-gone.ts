import type { Socket } from "node:net";
import type { Clock } from "@guidevane/core";

/** Resolves after `ms`, or as soon as the client has left. */
export function waitOrGone(socket: Socket, clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stop();
      socket.off("close", done);
      resolve();
    };
    const stop = clock.after(ms, done);
    socket.on("close", done);
  });
}
