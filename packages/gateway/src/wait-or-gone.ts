import type { Socket } from "node:net";
import type { Clock } from "@guidevane/core";
import type { Admitted, Waiting } from "@guidevane/guard";

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

/** The turn of a request that waits in the queue; null when its client leaves first, and then it leaves the queue too. */
export async function turnOrGone(socket: Socket, waiting: Waiting): Promise<Admitted | null> {
  const { promise: gone, resolve } = Promise.withResolvers<null>();
  const leave = (): void => {
    waiting.leave();
    resolve(null);
  };
  socket.on("close", leave);
  try {
    return await Promise.race([waiting.turn, gone]);
  } finally {
    socket.off("close", leave);
  }
}
