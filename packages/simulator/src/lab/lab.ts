import { seededRandom } from "@guidevane/core";
import { EventHeap } from "./event-heap.ts";
import { EVENT } from "./events.ts";
import { type FailureStep, failureSteps } from "./failure-steps.ts";
import { LabControl } from "./lab-control.ts";
import { LabEngines } from "./lab-engines.ts";
import { type LabFleet, labFleet, placesOf } from "./lab-fleet.ts";
import { LabHealth } from "./lab-health.ts";
import type { LabOptions } from "./lab-options.ts";
import { LabRequests } from "./lab-requests.ts";
import { LabClock } from "./lab-timers.ts";
import { mix32 } from "./mix.ts";
import type { PolicyDefinition, PolicyValues } from "./policy.ts";
import { Tally } from "./tally.ts";
import type { Workload } from "./workload.ts";

/** What a run was, and what came of it. */
export interface LabRun {
  readonly tally: Tally;
  readonly fleet: LabFleet;
  readonly values: PolicyValues;
  /** Events handled. */
  readonly events: number;
  readonly preemptions: number;
}

/**
 * Runs a workload through a fleet: clients, gateways, engines and a control plane on one virtual clock. Equal options give
 * equal results to the last bit.
 *
 * @throws GuidevaneError `bad_trace` where fleet and workload don't fit, `bad_usage` for a failure of what isn't there
 */
export function runLab(options: LabOptions): LabRun {
  const { workload, seed, policy, gatewaysPerCluster = 2, failures = [] } = options;
  const fleet = labFleet(options.fleet);
  const gatewayCluster = Uint16Array.from({ length: fleet.clusters.length * gatewaysPerCluster }, (_, gateway) =>
    Math.floor(gateway / gatewaysPerCluster),
  );
  const places = placesOf(workload, fleet);
  const heap = new EventHeap();
  const clock = new LabClock(heap, EVENT.timer);
  const random = seededRandom(seed);
  const tally = new Tally(workload);
  const health = new LabHealth(fleet, gatewayCluster.length, clock, random);
  const engines = new LabEngines(fleet, workload, options.kvTokens ?? Number.POSITIVE_INFINITY, clock, heap);
  const control = new LabControl(fleet, engines, clock, tally, gatewayCluster);
  const parts = { options, heap, clock, random, health, control, tally };
  const requests = new LabRequests(parts, gatewayCluster.length, fleet.engines.length);
  engines.begin(requests);
  health.begin((engine) => engines.alive[engine] === 1);

  const keyHash = keyHashes(workload);
  const values = { ...defaultsOf(policy), ...options.values };
  const world = {
    fleet: options.believed === undefined ? fleet : labFleet(options.believed),
    workload,
    places,
    keyHash,
    clock,
    random: seededRandom(seed + 1),
    gatewayCluster,
    inFlight: requests.inFlight,
    health: health.factor,
    healthChanges: health.changes,
    clientAttempts: tally.clientAttempts,
    signals: control.board,
    demandRps: (cell: number) => control.demandRps(cell),
    demandDeviationRps: (cell: number) => control.demandDeviationRps(cell),
    severity: (engine: number) => control.severity(engine),
    readyReplicas: (engine: number) => control.ready[engine]!,
    liveGateways: () => gatewaysPerCluster,
    deliver: (task: () => void) => void clock.after(options.snapshotDelayMs ?? SNAPSHOT_DELAY_MS, task),
    cachedBlocks: (engine: number, request: number) => {
      const replica = engines.replicas[engines.replicaFor(engine, keyHash[workload.conversation[request]!]!)]!;
      return replica.cache.find(workload.blockIds, workload.blockFrom[request]!, workload.promptBlocks[request]!);
    },
    published: (cell: number, weights: Float64Array) => control.published(cell, weights),
  };
  const routing = policy.create(world, values);
  requests.begin(world, routing, engines);
  control.start(options, routing);
  for (const step of failureSteps(failures, fleet))
    clock.after(step.atMs, () => take(step, engines, control, requests));

  const events = handleAll(options, heap, clock, engines, requests);
  const preemptions = engines.replicas.reduce((sum, each) => sum + each.preemptions, 0);
  return { tally, fleet, values, events, preemptions };
}

/** Arrivals and events in order of time, until all is over; gives how many there were. */
function handleAll(
  { workload, untilMs = Number.POSITIVE_INFINITY, onProgress }: LabOptions,
  heap: EventHeap,
  clock: LabClock,
  engines: LabEngines,
  requests: LabRequests,
): number {
  const { atMs, size } = workload;
  const step = Math.max(1, Math.floor(size / PROGRESS_STEPS));
  let events = 0;
  let row = 0;
  let lastMs = 0;
  for (; ; events++) {
    const arrivesMs = row < size && atMs[row]! < untilMs ? atMs[row]! : Number.POSITIVE_INFINITY;
    const isOver = arrivesMs === Number.POSITIVE_INFINITY;
    if (isOver && (requests.underWay === 0 || heap.nextMs > lastMs + DRAIN_MS)) break;
    // An arrival goes before what else happens at its instant.
    if (arrivesMs <= heap.nextMs) {
      clock.now = arrivesMs;
      lastMs = arrivesMs;
      if (row % step === 0) onProgress?.(row / size);
      requests.arrive(row++);
      continue;
    }
    clock.now = heap.nextMs;
    const { kind, subject, mark } = heap;
    heap.drop();
    if (kind === EVENT.replica) engines.run(subject, mark);
    else if (kind === EVENT.atEngine) requests.atEngine(subject, mark);
    else if (kind === EVENT.answered) requests.answered(subject);
    else if (kind === EVENT.back) requests.back(subject, mark);
    else if (kind === EVENT.giveUp) requests.giveUp(subject, mark);
    else if (kind === EVENT.arrive) {
      lastMs = clock.now;
      requests.arriveAgain(subject);
    } else clock.fire(subject);
  }
  onProgress?.(1);
  return events;
}

function take(step: FailureStep, engines: LabEngines, control: LabControl, requests: LabRequests): void {
  switch (step.does) {
    case "control":
      control.setUp(step.up);
      break;
    case "die":
      for (const attempt of engines.die(step.engine)) requests.lost(attempt);
      break;
    case "return":
      engines.alive[step.engine] = 1;
      break;
    case "slow":
      engines.setSlowdown(step.engine, step.factor);
      break;
    case "forget":
      engines.forget(step.engine);
      break;
  }
}

const SNAPSHOT_DELAY_MS = 500;
/** What is under way after the last arrival may end for so long; what has not by then never answered in time. */
const DRAIN_MS = 120_000;
const PROGRESS_STEPS = 200;
const KEY_SALT = 0x6b65_7900;

function keyHashes({ conversation }: Workload): Uint32Array {
  const count = conversation.reduce((most, each) => Math.max(most, each), 0) + 1;
  return Uint32Array.from({ length: count }, (_, index) => mix32(index ^ KEY_SALT));
}

function defaultsOf({ grid }: PolicyDefinition): PolicyValues {
  return Object.fromEntries(Object.entries(grid).map(([name, values]) => [name, values[0]!]));
}
