import type { Clock, DemandReport, Outcome, Random } from "@guidevane/core";
import type { LabFleet } from "./lab-fleet.ts";
import type { SignalBoard } from "./signal-board.ts";
import type { Workload } from "./workload.ts";

/** What `route` says when no engine should get the request. */
export const SHED = -1;
/** What it says when no engine can. */
export const NOBODY = -2;

/** How requests find engines: one object for the whole fleet, its gateways and its control plane. */
export interface Policy {
  /**
   * The engine for a request that is at a gateway now, or `SHED` or `NOBODY`.
   *
   * @param tried engines that failed it before; never to be named again
   * @param isFree no engine has had the request yet, so that trying again adds no work
   */
  route(gateway: number, request: number, tried: readonly number[], isFree: boolean): number;
  /** A round of the control plane, every `tickMs` of the fleet's policy; not called while the control plane is down. */
  tick?(): void;
  /** The gateway sent the request to the engine, or has its answer (or failure) from it. */
  sent?(gateway: number, request: number, engine: number): void;
  ended?(gateway: number, request: number, engine: number, outcome: Outcome, tbotMs: number | null): void;
  /** The answer under way has begun, so long after it was sent. */
  firstToken?(gateway: number, request: number, ttftMs: number): void;
  /** The gateway is done with the request; the client may send it again. */
  over?(gateway: number, request: number): void;
  /** What a gateway tells the control plane of engines, every second. */
  report?(gateway: number): DemandReport["engines"];
}

export interface PolicyDefinition {
  readonly name: string;
  /** In a sentence, for the report. */
  readonly does: string;
  /** Values that tuning tries, by parameter; the first of each is the default. */
  readonly grid: Readonly<Record<string, readonly number[]>>;
  create(world: PolicyWorld, values: PolicyValues): Policy;
}

export type PolicyValues = Readonly<Record<string, number>>;

/** What every policy may know; none but a yardstick knows more. Arrays are live: they are read, never written. */
export interface PolicyWorld {
  readonly fleet: LabFleet;
  readonly workload: Workload;
  /** Place in the fleet of each of the workload's clusters and classes. */
  readonly places: { readonly cluster: readonly number[]; readonly class: readonly number[] };
  /** Hash of each conversation's key, by its number. */
  readonly keyHash: Uint32Array;
  readonly clock: Clock;
  readonly random: Random;
  /** Cluster of each gateway. */
  readonly gatewayCluster: Uint16Array;
  /** Requests that a gateway has at an engine now: gateway · engines + engine. */
  readonly inFlight: Uint32Array;
  /** 0..1: part of its share that a gateway lets an engine have; 0 = it is dead to it. Same index. */
  readonly health: Float64Array;
  /** By gateway: rises with each change of what it holds of an engine's health. */
  readonly healthChanges: Uint32Array;
  /** Times that its client has sent a request; clients say so when they try again. */
  readonly clientAttempts: Uint8Array;
  /** What engines say of themselves, as old as it is. */
  readonly signals: SignalBoard;
  /** Offered requests/s of a cell (class · clusters + cluster), as the control plane knows it. */
  readonly demandRps: (cell: number) => number;
  /** 0..1: how much of an engine's answers fail, as gateways report it. */
  readonly severity: (engine: number) => number;
  /** One deviation of it by chance. */
  readonly demandDeviationRps: (cell: number) => number;
  /** Ready replicas that the control plane knows of. */
  readonly readyReplicas: (engine: number) => number;
  /** Live gateways of a cluster. */
  readonly liveGateways: (cluster: number) => number;
  /** Runs `task` once what the control plane publishes now has come to the gateways. */
  readonly deliver: (task: () => void) => void;
  /**
   * How many blocks of a request's prompt an engine's cache has at this moment. Nobody who routes can know it: for a
   * yardstick alone.
   */
  readonly cachedBlocks: (engine: number, request: number) => number;
  /** Tells the tally of new weights of a cell, by engine; they are what churn is counted from. */
  readonly published: (cell: number, weights: Float64Array) => void;
}

/** Cell of a request in the fleet's own numbers. */
export function cellOf({ workload, places, fleet }: PolicyWorld, request: number): number {
  const cluster = places.cluster[workload.cluster[request]!]!;
  return places.class[workload.requestClass[request]!]! * fleet.clusters.length + cluster;
}

/** Whether an engine may get a request of this gateway: not dead to it, not tried. */
export function isUsable(world: PolicyWorld, gateway: number, engine: number, tried: readonly number[]): boolean {
  return world.health[gateway * world.fleet.engines.length + engine]! > 0 && !tried.includes(engine);
}
