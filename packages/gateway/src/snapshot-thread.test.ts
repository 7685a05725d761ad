import { SlotRegistry } from "@guidevane/selector";
import { afterEach, describe, expect, it } from "vitest";
import { textOf } from "./snapshot-text.ts";
import { SnapshotThread } from "./snapshot-thread.ts";

const DYING = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", ({ text }) => {
      const word = Buffer.from(text.bytes).toString();
      if (word === "die") throw new Error("told to die");
      parentPort.postMessage({ ok: true, found: { kind: "refused", reason: "schema", message: word } });
    });
  `)}`,
);

describe("a thread that reads snapshots", () => {
  const threads: SnapshotThread[] = [];
  afterEach(() => Promise.all(threads.splice(0).map((thread) => thread.stop())));

  it("rejects what it dies of, and reads the next one as a new thread", async () => {
    const thread = new SnapshotThread({ selector: "ts", state: new SlotRegistry({ cells: 1 }).state }, DYING);
    threads.push(thread);
    await expect(thread.read(textOf("die"))).rejects.toThrow("the thread that reads snapshots died: told to die");
    expect(await thread.read(textOf("next"))).toMatchObject({ message: "next" });
  });

  it("rejects what is under way when it is stopped, and starts no other for what comes later", async () => {
    const thread = new SnapshotThread({ selector: "ts", state: new SlotRegistry({ cells: 1 }).state });
    const read = thread.read(textOf("{}"));
    const rejected = expect(read).rejects.toThrow("the thread that reads snapshots died");
    await thread.stop();
    await rejected;
    await expect(thread.read(textOf("{}"))).rejects.toThrow("was stopped");
  });

  it("says what is wrong with a text as reading it here does", async () => {
    const thread = new SnapshotThread({ selector: "ts", state: new SlotRegistry({ cells: 1 }).state });
    threads.push(thread);
    const wrongSum = { ...textOf("{}"), checksum: "0".repeat(64) };
    expect(await thread.read(wrongSum)).toMatchObject({ kind: "refused", reason: "checksum" });
    expect(await thread.read(textOf("{"))).toEqual({
      kind: "refused",
      reason: "schema",
      message: "snapshot: is not JSON",
    });
  });
});
