import { checkClusterSnapshot, loadFleet, parseClusterSnapshot } from "@guidevane/core";
import { expect, it } from "vitest";
import { bootstrapSnapshot } from "./bootstrap.ts";
import { SlotRegistry } from "./slots.ts";
import { compileTable } from "./table.ts";

const FLEET = `
clusters: { here: { region: r1 }, there: { region: r2 } }
engines:
  near: { url: "http://10.0.0.1:8000", kind: vllm, region: r1, models: [m], capacityWps: 10, replicas: 2 }
  far: { url: "http://10.0.0.2:8000", kind: vllm, region: r2, models: [m, n], capacityWps: 10, replicas: 1 }
  resting: { url: "http://10.0.0.3:8000", kind: vllm, region: r1, models: [m], capacityWps: 10, adminState: draining }
classes:
  chat: { model: m, work: 2 }
network: { file: rtt.csv }
demandRps: { here: { chat: 3 } }
`;

async function fleet() {
  return await loadFleet(FLEET, "fleet.yaml", () => Promise.resolve("from,to,rtt_ms\nr1,r2,40\n"));
}

it("weighs engines by capacity over round trip and unloaded TTFT, those active only", async () => {
  const snapshot = bootstrapSnapshot(await fleet(), "here", 1_700_000_000_000);
  const cell = snapshot.cells.find((each) => each.class === "chat")!;
  expect(cell.engines).toEqual(["near", "far"]);
  // 20 ÷ (0 + 60) to 10 ÷ (40 + 60), TTFT being the generic curve's 60 ms.
  expect(cell.weights[0]! / cell.weights[1]!).toBeCloseTo(20 / 60 / (10 / 100), 12);
  expect([snapshot.version, cell.ring, cell.demandRps, cell.work]).toEqual([0, "", 3, 2]);
  // 60 ms, and 256 tokens of 12 ms; the far one a round trip more.
  expect(cell.expectedMs).toEqual([60 + 256 * 12, 40 + 60 + 256 * 12]);
  // Its time at 0.95, as a plan would say: on the last piece of both curves, from 0.9 to 0.97.
  const busyMs = 320 + (380 * 5) / 7 + 256 * (22 + (4 * 5) / 7);
  expect(cell.streamLimit).toBeCloseTo((1.25 * (10 * busyMs + 5 * (40 + busyMs))) / 1000, 9);
  expect(snapshot.engines.resting?.adminState).toBe("draining");
});

it("is a snapshot that a gateway may route by", async () => {
  const snapshot = bootstrapSnapshot(await fleet(), "there");
  expect(checkClusterSnapshot(snapshot)).toEqual([]);
  expect(parseClusterSnapshot(JSON.stringify(snapshot))).toEqual(snapshot);
  const { table } = compileTable(snapshot, new SlotRegistry({ engines: 8, cells: 4 }));
  expect(table.models).toEqual(["m", "n"]);
});

it("leaves out a cell that no engine may serve from this cluster", async () => {
  const far = await loadFleet(
    FLEET.replace("{ model: m, work: 2 }", "{ model: n, work: 2, needs: { networkMs: 10 } }"),
    "fleet.yaml",
    () => Promise.resolve("from,to,rtt_ms\nr1,r2,40\n"),
  );
  expect(bootstrapSnapshot(far, "here").cells.map((cell) => cell.class)).toEqual(["m"]);
  expect(bootstrapSnapshot(far, "there").cells.map((cell) => cell.class)).toEqual(["chat", "m"]);
});

it("refuses a cluster that the fleet doesn't have", async () => {
  const known = await fleet();
  expect(() => bootstrapSnapshot(known, "nowhere")).toThrow(/no cluster nowhere/);
});
