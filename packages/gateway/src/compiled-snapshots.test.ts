import { packSnapshot } from "@guidevane/core";
import { createRouterFactory, namesOf, SlotRegistry, translate } from "@guidevane/selector";
import { describe, expect, it } from "vitest";
import { CompiledSnapshots } from "./compiled-snapshots.ts";
import { fleetOf } from "./testing/fleet.ts";
import { snapshotOf } from "./testing/snapshot.ts";

/** Snapshots 0, 1, 2 … of one engine each, named as they are, compiled for two threads. */
async function setUp() {
  const registry = new SlotRegistry({ threads: 2 });
  const factory = createRouterFactory("ts");
  const compiled = new CompiledSnapshots(
    registry,
    () => new Map(),
    () => {},
  );
  const compile = async (engine: string): Promise<number> => {
    const snapshot = snapshotOf(await fleetOf({ [engine]: "http://127.0.0.1:1" }), { version: 1 }, { [engine]: 1 });
    const { cluster, version, epoch } = snapshot;
    const { number } = await compiled.compile(
      {
        ...{ kind: "read", cluster, version, epoch, names: namesOf(snapshot) },
        compile: async (slots) => ({
          packed: packSnapshot(snapshot),
          table: factory.share(translate(snapshot, slots), registry.state).table,
        }),
      },
      "control",
    );
    return number;
  };
  const held = (): string[] => compiled.inUse().flatMap(({ engines }) => Object.keys(engines));
  return { compiled, compile, held, registry };
}

describe("slots of a snapshot", () => {
  it("are held while it is in use, though all threads that had it died", async () => {
    const { compiled, compile, held, registry } = await setUp();
    const a = await compile("a");
    compiled.handTo(a, [0, 1]);
    const slot = registry.slotOf("a");
    for (const thread of [0, 1]) compiled.letGoOfAll(thread);
    expect(held()).toEqual(["a"]);
    expect(registry.slotOf("a")).toBe(slot);

    for (const thread of [0, 1]) compiled.handToNew(a, thread);
    compiled.handTo(await compile("b"), [0, 1]);
    for (const thread of [0, 1]) compiled.letGo(a, thread);
    expect(held()).toEqual(["b"]);
    expect(registry.slotOf("a")).toBeNull();
  });

  it("are not held for a thread that died before it could load it", async () => {
    const { compiled, compile, held } = await setUp();
    const [a, b, c] = [await compile("a"), await compile("b"), await compile("c")];
    compiled.handTo(a, [0, 1]);
    compiled.letGoOfAll(1);
    compiled.handTo(b, [0, 1]);
    compiled.letGo(a, 0);
    compiled.handTo(c, [0, 1]);
    compiled.letGo(b, 0);
    compiled.handToNew(c, 1);
    expect(held()).toEqual(["c"]);
  });
});
