import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Fleet, GuidevaneError } from "@guidevane/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readFleetFiles } from "./read-fleet.ts";
import { type FleetWatch, watchFleet } from "./reload-fleet.ts";

let folder = "";
let watch: FleetWatch | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "guidevane-reload-"));
});
afterEach(async () => {
  watch?.stop();
  await rm(folder, { recursive: true, force: true });
});

const fleetText = (capacityWps: number | string) => `
clusters: { east: { region: r } }
engines: { e1: { url: "http://127.0.0.1:9", region: r, models: [m], capacityWps: ${capacityWps} } }
network: { file: rtt.csv }
`;
const rtts = (ms: number) => `from,to,rtt_ms\nr,r,${ms}\n`;

async function start(take: (fleet: Fleet) => readonly string[] = () => []) {
  const path = join(folder, "fleet.yaml");
  await writeFile(path, fleetText(1));
  await writeFile(join(folder, "rtt.csv"), rtts(1));
  const taken: number[] = [];
  const said: { level: string; facts: { error?: string; needRestart?: readonly string[] }; message: string }[] = [];
  let heard = () => {};
  const log = (level: string) => (facts: object, message: string) => {
    said.push({ level, facts, message });
    heard();
  };
  watch = watchFleet({
    path,
    files: await readFleetFiles(path),
    logger: { info: log("info"), warn: log("warn"), error: log("error") },
    take: async (fleet) => {
      const keys = take(fleet);
      taken.push(fleet.engines.get("e1")!.capacityWps);
      return keys;
    },
    pollMs: 10,
  });
  /** Resolves when the condition holds after a line was logged: a file may be seen half written and refused first. */
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      heard = () => condition() && resolve();
      heard();
    });
  return { path, taken, said, until, watch };
}

describe("a fleet file under watch", () => {
  it("is taken when it changes, saved in place or by a rename", async () => {
    const { path, taken, until } = await start();
    await writeFile(path, fleetText(22));
    await until(() => taken.at(-1) === 22);
    await writeFile(`${path}.new`, fleetText(333));
    await rename(`${path}.new`, path);
    await until(() => taken.at(-1) === 333);
  });

  it("is taken when a file that it names changes", async () => {
    const { taken, until } = await start();
    await writeFile(join(folder, "rtt.csv"), rtts(100));
    await until(() => taken.length > 0);
  });

  it("B135: is refused whole when something is wrong with it, naming path and value, and taken when it is mended", async () => {
    const { path, taken, said, watch } = await start();
    await writeFile(path, fleetText(-5));
    await watch.reload("test");
    expect(taken).toEqual([]);
    const refused = said.find(({ level }) => level === "error")!;
    expect(refused.message).toBe("the fleet file was refused; the present one stays");
    expect(refused.facts.error).toContain("engines.e1.capacityWps");
    expect(refused.facts.error).toContain("(got -5)");
    await rm(path);
    await watch.reload("test");
    expect(said.at(-1)!.facts.error).toContain("no such file");
    await writeFile(path, fleetText(7));
    await watch.reload("test");
    expect(taken.at(-1)).toBe(7);
  });

  it("stays when the program refuses it, and is offered again", async () => {
    let refuse = true;
    const { path, taken, said, watch } = await start(() => {
      if (refuse) throw new GuidevaneError("bad_fleet", "not this one");
      return ["gateway.limits.headBytes"];
    });
    await writeFile(path, fleetText(8));
    await watch.reload("test");
    expect([taken, said.at(-1)!.facts.error]).toEqual([[], "not this one"]);
    refuse = false;
    await watch.reload("test");
    expect(taken).toEqual([8]);
    const warning = said.find(({ level }) => level === "warn");
    expect(warning).toMatchObject({ facts: { needRestart: ["gateway.limits.headBytes"] } });
  });

  it("is left alone when a date changed and nothing else, and taken on SIGHUP all the same", async () => {
    const { said, taken, until, watch } = await start();
    await watch.reload("test");
    expect([said.map(({ message }) => message), taken]).toEqual([["the fleet file is as before"], []]);
    // A key file that it names may have changed, and is read when the fleet is taken.
    process.emit("SIGHUP");
    await until(() => taken.length > 0);
    expect(taken).toEqual([1]);
  });
});
