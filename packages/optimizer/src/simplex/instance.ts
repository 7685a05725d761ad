import { type Random, seededRandom, standardNormal } from "@guidevane/core";
import type { Problem } from "../problem.ts";

/**
 * Random fleets for tests and benchmarks: clusters and engines in 14 regions, network time from the great circle, four
 * classes of request and four SKUs, eligibility that favours what is near, lognormal demand scaled to a utilisation.
 * The same seed gives the same fleet.
 */
export interface InstanceShape {
  readonly cells: number;
  readonly engines: number;
  readonly seed: number;
  /** Part of all cell–engine pairs that are eligible. Default 0.2. */
  readonly density?: number;
  /** Demand over capacity. Default 0.8. */
  readonly utilisation?: number;
  /** Knots of each engine's curve. Default 16. */
  readonly knots?: number;
  /** Part of the capacity that the ramp covers. Default 0.06; 0 = no ramp. */
  readonly headroom?: number;
}

/** Latitude and longitude, degrees, of places where clouds have regions. */
const REGIONS: readonly (readonly [number, number])[] = [
  [39.0, -77.5],
  [40.0, -83.0],
  [45.8, -119.7],
  [37.4, -122.0],
  [45.5, -73.6],
  [-23.5, -46.6],
  [53.3, -6.3],
  [51.5, -0.1],
  [50.1, 8.7],
  [59.3, 18.1],
  [19.1, 72.9],
  [1.3, 103.8],
  [35.7, 139.7],
  [-33.9, 151.2],
];
const CLASS_WORK = [0.5, 1, 4, 12];
/** Light speed in fibre on a path somewhat longer than the great circle. */
const MS_PER_KM = 0.013;
const EARTH_KM = 6371;

export function randomInstance(shape: InstanceShape): Problem {
  const { cells, engines, seed, density = 0.2, utilisation = 0.8, knots = 16, headroom = 0.06 } = shape;
  const random = seededRandom(seed);
  const cellRegion = Uint8Array.from({ length: cells }, () => Math.floor(random() * REGIONS.length));
  const engineRegion = Uint8Array.from({ length: engines }, () => Math.floor(random() * REGIONS.length));

  const capacityWps = new Float64Array(engines);
  const unloadedMs = new Float64Array(engines);
  const knotStart = new Uint32Array(engines + 1);
  const knotRho = new Float64Array(engines * knots);
  const knotMs = new Float64Array(engines * knots);
  const skus = Array.from({ length: 4 }, () => ({
    l0: 60 + 240 * random(),
    wps: 4 + 20 * random(),
    kappa: 1.02 + 0.06 * random(),
    power: 2 + Math.floor(3 * random()),
    servers: 4 + Math.floor(13 * random()),
  }));
  for (let engine = 0; engine < engines; engine++) {
    const sku = skus[Math.floor(random() * skus.length)]!;
    capacityWps[engine] = sku.wps * (1 + Math.floor(8 * random()));
    unloadedMs[engine] = sku.l0 * (0.95 + 0.1 * random());
    knotStart[engine + 1] = (engine + 1) * knots;
    for (let i = 0; i < knots; i++) {
      // Denser towards full load, where the curve bends.
      const gone = 1 - i / (knots - 1);
      const rho = 1 - gone * gone;
      const v = rho / sku.kappa;
      knotRho[engine * knots + i] = rho;
      knotMs[engine * knots + i] = unloadedMs[engine]! * (0.5 * rho + v ** sku.power / (sku.servers * (1 - v)));
    }
  }

  const arcStart = new Uint32Array(cells + 1);
  const arcEngine: number[] = [];
  const arcCostMs: number[] = [];
  const demandWps = new Float64Array(cells);
  const perCell = Math.min(engines, Math.max(1, Math.round(density * engines)));
  let demand = 0;
  let capacity = 0;
  for (const value of capacityWps) capacity += value;
  for (let cell = 0; cell < cells; cell++) {
    const work = CLASS_WORK[cell % CLASS_WORK.length]!;
    const keyed = Array.from({ length: engines }, (_, engine) => {
      const rttMs = roundTripMs(REGIONS[cellRegion[cell]!]!, REGIONS[engineRegion[engine]!]!, random);
      return { engine, rttMs, key: (rttMs + 60) * (0.2 + random()) };
    });
    keyed.sort((a, b) => a.key - b.key || a.engine - b.engine);
    const chosen = keyed.slice(0, perCell).sort((a, b) => a.engine - b.engine);
    for (const { engine, rttMs } of chosen) {
      arcEngine.push(engine);
      arcCostMs.push(rttMs / work + unloadedMs[engine]!);
    }
    arcStart[cell + 1] = arcEngine.length;
    demandWps[cell] = work * Math.exp(standardNormal(random));
    demand += demandWps[cell]!;
  }
  const factor = demand > 0 ? (utilisation * capacity) / demand : 0;
  for (let cell = 0; cell < cells; cell++) demandWps[cell] = demandWps[cell]! * factor;

  const curves = { capacityWps, knotStart, knotRho, knotMs, headroom, headroomMs: headroom > 0 ? 6000 : 0 };
  return {
    demandWps,
    arcStart,
    arcEngine: Uint32Array.from(arcEngine),
    arcCostMs: Float64Array.from(arcCostMs),
    curves,
    shedMs: new Float64Array(cells).fill(60_000).map((base, cell) => base * (1 + (cell % 2))),
    shedStepMs: 300,
    shedSteps: 20,
  };
}

/**
 * So many models, each a fleet of its own with so many clusters and engines and one class, as one problem: no arc connects
 * two models. The cells are ordered by cluster, then model, as a fleet's are.
 */
export function manyModels(shape: {
  readonly models: number;
  readonly clusters: number;
  readonly engines: number;
  readonly seed: number;
}): Problem {
  const { models, clusters, engines, seed } = shape;
  const fleets = Array.from({ length: models }, (_, model) =>
    randomInstance({ cells: clusters, engines, seed: seed * 1000 + model, density: 1 }),
  );
  const arcStart = [0];
  const arcEngine: number[] = [];
  const arcCostMs: number[] = [];
  const demandWps: number[] = [];
  const shedMs: number[] = [];
  for (let cluster = 0; cluster < clusters; cluster++) {
    for (const [model, fleet] of fleets.entries()) {
      demandWps.push(fleet.demandWps[cluster]!);
      shedMs.push(fleet.shedMs[cluster]!);
      for (let arc = fleet.arcStart[cluster]!; arc < fleet.arcStart[cluster + 1]!; arc++) {
        arcEngine.push(model * engines + fleet.arcEngine[arc]!);
        arcCostMs.push(fleet.arcCostMs[arc]!);
      }
      arcStart.push(arcEngine.length);
    }
  }
  const join = (column: "capacityWps" | "knotRho" | "knotMs") =>
    Float64Array.from(fleets.flatMap(({ curves }) => [...curves[column]]));
  const knots = fleets[0]?.curves.knotStart[1] ?? 0;
  return {
    demandWps: Float64Array.from(demandWps),
    arcStart: Uint32Array.from(arcStart),
    arcEngine: Uint32Array.from(arcEngine),
    arcCostMs: Float64Array.from(arcCostMs),
    curves: {
      capacityWps: join("capacityWps"),
      knotStart: Uint32Array.from({ length: models * engines + 1 }, (_, engine) => engine * knots),
      knotRho: join("knotRho"),
      knotMs: join("knotMs"),
      headroom: fleets[0]?.curves.headroom ?? 0,
      headroomMs: fleets[0]?.curves.headroomMs ?? 0,
    },
    shedMs: Float64Array.from(shedMs),
    shedStepMs: 300,
    shedSteps: 20,
  };
}

/** The same fleet with every demand times an independent lognormal of spread `sigma`. */
export function noisyDemand(problem: Problem, sigma: number, seed: number): Problem {
  const random = seededRandom(seed);
  return { ...problem, demandWps: problem.demandWps.map((value) => value * Math.exp(sigma * standardNormal(random))) };
}

/** The same fleet without the engine of the largest capacity. */
export function loseLargest(problem: Problem): Problem {
  const capacityWps = problem.curves.capacityWps.slice();
  let largest = 0;
  for (let engine = 0; engine < capacityWps.length; engine++)
    if (capacityWps[engine]! > capacityWps[largest]!) largest = engine;
  if (capacityWps.length > 0) capacityWps[largest] = 0;
  return { ...problem, curves: { ...problem.curves, capacityWps } };
}

/** 1.3 ms per 100 km and 2–4 ms of access. */
function roundTripMs(a: readonly [number, number], b: readonly [number, number], random: Random): number {
  const rad = Math.PI / 180;
  const half = Math.sin(((b[0] - a[0]) * rad) / 2) ** 2;
  const across = Math.cos(a[0] * rad) * Math.cos(b[0] * rad) * Math.sin(((b[1] - a[1]) * rad) / 2) ** 2;
  const km = 2 * EARTH_KM * Math.asin(Math.min(1, Math.sqrt(half + across)));
  return MS_PER_KM * km + 2 + 2 * random();
}
