/**
 * How a command that serves ends.
 *
 * Started by hand it ends on SIGINT, SIGTERM or SIGHUP (where that does not mean "read the fleet file again"). Started by `guidevane up` it has a channel to its parent: then it leaves
 * the terminal's SIGINT to the parent, ends on SIGTERM, and ends too when the channel closes, which is how it notices a
 * parent that was killed.
 */
export function untilStopped({ hangupEnds = true } = {}): Promise<StopReason> {
  return new Promise((resolve) => {
    process.on("SIGTERM", () => resolve("SIGTERM"));
    // Without a listener it ends the process, also while a program that will listen to it is still starting.
    process.on("SIGHUP", () => {
      if (hangupEnds) resolve("SIGHUP");
    });
    process.on("SIGINT", () => {
      if (!isChild()) resolve("SIGINT");
    });
    if (!isChild()) return;
    process.on("disconnect", () => resolve("parent gone"));
    // The channel is to be noticed, not to keep a process that has ended its work.
    process.channel?.unref();
    if (!process.connected) resolve("parent gone");
  });
}

/** Whether `guidevane up` started this process. */
export function isChild(): boolean {
  return process.send !== undefined;
}

export type StopReason = "SIGINT" | "SIGTERM" | "SIGHUP" | "parent gone";

/** Resolves when the parent says that what this program asks is there; at once where nobody started it as a child. */
export function untilTold(): Promise<void> {
  if (!isChild()) return Promise.resolve();
  return new Promise((resolve) => {
    process.once("message", () => {
      process.channel?.unref();
      resolve();
    });
    // Nothing else keeps the process meanwhile.
    process.channel?.ref();
  });
}

/** Tells the parent, where there is one, that this process now does what it was started for. */
export function tellReady(): void {
  process.send?.({ ready: true } satisfies ChildMessage);
}

/** What a child of `guidevane up` says over its channel. */
export interface ChildMessage {
  readonly ready: true;
}
