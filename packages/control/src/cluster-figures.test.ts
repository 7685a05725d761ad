import { beforeAll, expect, it } from "vitest";
import { planFigures } from "./cluster-figures.ts";
import { evenPublication, testFleet } from "./testing/fleet.ts";

let publication: ReturnType<typeof evenPublication>;
beforeAll(async () => {
  const fleet = await testFleet();
  const demandRps = new Map([
    ["east\nchat", 30],
    ["west\nchat", 10],
  ]);
  publication = evenPublication({ wallMs: 0, fleet, demandRps, engines: new Map(), gateways: new Map() });
  const cellOf = (cluster: string) => publication.clusters.get(cluster)!.cells[0]!;
  Object.assign(cellOf("east"), { weights: [0.75, 0.25], expectedMs: [100, 300], shed: 0.2 });
  Object.assign(cellOf("west"), { weights: [0, 1], expectedMs: [300, 200] });
  // From east the engines are 4 and 90 ms away, from west 70 and 5.
  const rtts = { east: [4, 90], west: [70, 5] };
  for (const [cluster, [e1, e2]] of Object.entries(rtts)) {
    const { engines } = publication.clusters.get(cluster)!;
    engines.e1!.rttMs = e1!;
    engines.e2!.rttMs = e2!;
  }
});

it("gives mean latency and detour of what is served, and the shed share of what is asked for", () => {
  const { clusters, fleet } = planFigures(publication);
  // East: 24 of 30 served, 0.75·100 + 0.25·300; a quarter of it goes 86 ms further than it need.
  expect(clusters[0]).toMatchObject({ cluster: "east", demandRps: 30, meanLatencyMs: 150, detourMs: 21.5 });
  expect(clusters[0]!.shed).toBeCloseTo(0.2, 12);
  expect(clusters[1]).toMatchObject({ cluster: "west", meanLatencyMs: 200, detourMs: 0, shed: 0 });
  expect(fleet.demandRps).toBe(40);
  expect(fleet.meanLatencyMs).toBeCloseTo((24 * 150 + 10 * 200) / 34, 10);
  expect(fleet.detourMs).toBeCloseTo((24 * 21.5) / 34, 10);
  expect(fleet.shed).toBeCloseTo(6 / 40, 12);
});

it("says nothing of the latency where all is shed, and of the detour only among engines that may serve the class", () => {
  const changed = structuredClone(publication);
  const east = changed.clusters.get("east")!;
  east.cells[0]!.shed = 1;
  const west = changed.clusters.get("west")!;
  // e1 has become the nearer one, and may not serve a class that needs tools.
  west.engines.e2!.rttMs = 80;
  west.classes.chat!.needs.capabilities = ["tools"];
  west.engines.e1!.capabilities = ["vision"];
  const { clusters } = planFigures(changed);
  expect(clusters[0]).toMatchObject({ meanLatencyMs: null, detourMs: null, shed: 1 });
  expect(clusters[1]).toMatchObject({ detourMs: 0 });
});
