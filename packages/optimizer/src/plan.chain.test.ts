import { checkClusterSnapshot, seededRandom } from "@guidevane/core";
import { describe, expect, it } from "vitest";
import { explain } from "./explain.ts";
import { keysMoved } from "./keys-moved.ts";
import type { LiveEngine } from "./plan-types.ts";
import { demandOf, Loop, sixRegions } from "./stability.fixture.ts";
import { verifyCertificate } from "./verify.ts";

describe("a chain of plans through whatever may happen", () => {
  it.each([1, 2, 3])(
    "publishes only what verifies and explains itself (seed %s)",
    { timeout: 120_000 },
    async (seed) => {
      const random = seededRandom(seed);
      const fleet = await sixRegions("{ gateMs: 0.2 }");
      const loop = new Loop();
      let [published, held, shed] = [0, 0, 0];
      for (let tick = 0; tick < 60; tick++) {
        const load = random() < 0.2 ? 0 : 1.6 * random();
        const engines: Record<string, Partial<LiveEngine>> = {};
        for (const [id, { replicas }] of fleet.engines) {
          const dice = random();
          if (dice < 0.1) engines[id] = { readyReplicas: Math.floor(random() * (replicas + 1)) };
          else if (dice < 0.15) engines[id] = { adminState: random() < 0.5 ? "draining" : "out" };
          else if (dice < 0.25) engines[id] = { severity: random() };
          else if (tick % 20 === 19) engines[id] = { readyReplicas: 0 };
        }
        const inputs = demandOf(fleet, () => load * (0.5 + random()), engines);
        const { status, message, publication, gate } = loop.tick(inputs);
        const at = `tick ${tick}`;
        expect(["solved", "held"], `${at}: ${message}`).toContain(status);
        // The same again moves nothing to speak of, whether it is held or solved.
        const once = loop.published;
        const again = loop.tick(inputs);
        if (again.publication === null) held++;
        else expect(keysMoved(once, again.publication), at).toBeLessThan(0.001);
        for (const each of [publication, again.publication]) {
          if (each === null) continue;
          published++;
          expect(verifyCertificate(each), at).toEqual([]);
          for (const snapshot of each.clusters.values()) {
            expect(checkClusterSnapshot(snapshot), at).toEqual([]);
            const { gapMs, objectiveMs, churnFree } = snapshot.certificate;
            expect(gapMs, at).toBeGreaterThanOrEqual(-1e-9 * objectiveMs);
            expect(churnFree.gapMs, at).toBeGreaterThanOrEqual(-1e-9 * objectiveMs);
            for (const cell of snapshot.cells) {
              if (cell.shed > 0) shed++;
              const { engines: explained, demandPriceMs } = explain(each, snapshot.cluster, cell.class);
              for (const { isUsed, binds, reducedCostMs } of explained) {
                if (!isUsed || binds === "out" || cell.shed === 1) continue;
                expect(Math.abs(reducedCostMs), `${at}, ${cell.cluster} ${cell.class}`).toBeLessThan(
                  1e-6 * Math.max(1, demandPriceMs),
                );
              }
            }
          }
        }
        if (gate.certificate !== null) expect(gate.certificate.gapMs, at).toBeGreaterThanOrEqual(-1e-6);
      }
      expect(published).toBeGreaterThan(40);
      expect(held).toBeGreaterThan(20);
      expect(shed).toBeGreaterThan(10);
    },
  );
});
