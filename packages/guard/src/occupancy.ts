import { STREAM_LIMIT_FACTOR } from "@guidevane/core";
import type { StreamCounts } from "./stream-counts.ts";

/** What a gateway may hold of one class at a time: from the snapshot, divided by the live gateways. */
export interface AdmissionClass {
  readonly name: string;
  readonly model: string;
  /** Higher = shed later. */
  readonly priority: number;
  /** Streams of the cell before it is shed: 1.25 × what its part of the engines holds at full load. */
  readonly streamLimit: number;
  /** Units of work of one of its requests. */
  readonly work: number;
  /** Work units/s that one of its streams is at full load: its work ÷ its expected time then. */
  readonly streamWps: number;
  /** Hard limit of its engines together; infinite where one has none. */
  readonly engineLimit: number;
}

/** The lowest of several priorities leaves this part of the gateway's own limit to the others. */
const GATEWAY_RESERVE = 0.1;

/**
 * Long answers fill engines seconds after arrivals outran them. So from this occupancy on the classes of lower priority
 * are also held to the rate at which engines work, and to what fills the room that is left within the time of an answer:
 *
 *     rate = full rate · max(LEAST_RATE, 1 + FILLED − O)
 *
 * Held to the full rate alone, engines never make up for what a lull left idle. With FILLED at 1 two gateways use less than
 * 0.95 of the capacity; at 1.1 tails are up to 1.3 times as long where no plan sheds. Few streams vary by chance, hence the least.
 */
const RATE_FROM = 0.8;
const FILLED = 1.05;
const LEAST_RATE = 0.9;
/**
 * So many seconds of the full rate, or so many requests, may come in at once. With 20 requests two gateways of 25 requests/s
 * each, met by 1.5 × the capacity, shed nothing for more than a second; with 6 four gateways at 0.94 send 2 % away.
 */
const BURST_S = 0.2;
const BURST_REQUESTS = 10;

/**
 * Streams are counted, and counts vary by chance: of N expected ones (Poisson) √N is one deviation. Few streams are let
 * above full by so many of them, lest a small fleet with room to spare sends clients away; for 256 and more 1.25 is more.
 */
const CHANCE_LOWEST = 3;
const CHANCE_HIGHEST = 4;

/** A class whose better was refused less than so long ago makes way. */
const MAKE_WAY_MS = 1000;

/** Why a request was not let in. */
export type LimitReason = "engine-limit" | "gateway-limit" | "class-limit" | "priority";

interface Member extends AdmissionClass {
  /** Streams at full load: the class's planned part. */
  readonly part: number;
  /** 0 = of the lowest priority of its model, 1 = of the highest. */
  readonly rank: number;
  readonly group: Group;
}

interface Group {
  readonly members: Member[];
  /** Work units/s of all parts together. */
  fullWps: number;
  /** This thread's part of it. */
  ratePerS: number;
  /** Occupancy up to which its lowest and its highest priority are let in, whatever they hold. */
  lowest: number;
  highest: number;
  /** Units of work that may still come in at once, and when that was so. */
  allowance: number;
  allowanceMost: number;
  atMs: number;
  readonly refusedAtMs: Map<number, number>;
}

/**
 * Who may come in, by streams held. The classes of one model share its engines, so what counts is their occupancy
 *
 *     O = Σ_k streams_k·v_k ÷ Σ_k part_k·v_k        part_k = streamLimit_k ÷ 1.25,  v_k = work_k ÷ expected time_k
 *
 * which is 1 when the engines hold what they hold at full load. Below 1 anybody is let in: what one class does not use
 * another may. From there up to 1.25 (more where there are few streams) the lowest priority stops first, the highest last; a
 * class that holds less than its planned part is let in as well, unless one of a higher priority was just refused. One class
 * alone has the plain limit. Classes that have betters are held to about the engines' rate before that, so that an overload is
 * met while it begins.
 */
export class Occupancy {
  readonly #counts: StreamCounts;
  #members = new Map<string, Member>();
  #groups = new Map<string, Group>();
  #maxStreams = Number.POSITIVE_INFINITY;

  readonly #threads: number;

  /** @param threads that let requests in by the same counts, each at its part of the rate */
  constructor(counts: StreamCounts, threads = 1) {
    this.#counts = counts;
    this.#threads = threads;
  }

  /** Takes over a snapshot's limits; what is held is held on. */
  adopt(classes: readonly AdmissionClass[], maxStreams: number): void {
    this.#maxStreams = maxStreams;
    const groups = new Map<string, Group>();
    const priorities = new Map<string, Set<number>>();
    this.#members = new Map();
    for (const { model, priority } of classes) {
      priorities.set(model, (priorities.get(model) ?? new Set()).add(priority));
      const last = this.#groups.get(model);
      const { allowance = Number.POSITIVE_INFINITY, atMs = 0, refusedAtMs = new Map() } = last ?? {};
      const rates = { fullWps: 0, ratePerS: 0, allowance, allowanceMost: 0, atMs };
      groups.set(model, { members: [], ...rates, lowest: 1, highest: 1, refusedAtMs });
    }
    for (const each of classes) {
      const group = groups.get(each.model)!;
      const rank = rankOf(each.priority, priorities.get(each.model)!);
      const part = each.streamLimit / STREAM_LIMIT_FACTOR;
      const member = { ...each, part, rank, group };
      group.members.push(member);
      group.fullWps += part * each.streamWps;
      group.allowanceMost = Math.max(group.allowanceMost, BURST_REQUESTS * each.work);
      this.#members.set(each.name, member);
    }
    for (const group of groups.values()) {
      group.ratePerS = group.fullWps / this.#threads;
      group.allowanceMost = Math.max(group.allowanceMost, BURST_S * group.ratePerS);
      const chance = 1 / Math.sqrt(group.members.reduce((sum, { part }) => sum + part, 0));
      group.highest = Math.max(STREAM_LIMIT_FACTOR, 1 + CHANCE_HIGHEST * chance);
      group.lowest = group.members.some(({ rank }) => rank < 1) ? 1 + CHANCE_LOWEST * chance : group.highest;
    }
    this.#groups = groups;
  }

  /** null = there is room. A class that no snapshot names has the gateway's limit alone. */
  refusal(name: string, nowMs: number): LimitReason | null {
    const member = this.#members.get(name);
    const reason = member === undefined ? this.#gatewayRefusal(1) : this.#refusal(member, nowMs);
    if (reason !== null) member?.group.refusedAtMs.set(member.priority, nowMs);
    return reason;
  }

  entered(name: string, nowMs: number): void {
    this.#counts.add(name, 1);
    const member = this.#members.get(name);
    // The highest priority is not held to the rate; what it takes is not there for the others.
    if (member === undefined) return;
    const { group, work } = member;
    group.allowance = Math.max(0, allowanceOf(group, nowMs, this.#occupancyOf(group)) - work);
  }

  left(name: string): void {
    this.#counts.add(name, -1);
  }

  held(name: string): number {
    return this.#counts.held(name);
  }

  /** Occupancy of a class's model, 1 = full; 0 for a class that is not known. */
  occupancy(name: string): number {
    const group = this.#members.get(name)?.group;
    return group === undefined ? 0 : this.#occupancyOf(group);
  }

  priority(name: string): number {
    return this.#members.get(name)?.priority ?? 0;
  }

  #refusal(member: Member, nowMs: number): LimitReason | null {
    const { group, engineLimit, rank } = member;
    const gateway = this.#gatewayRefusal(1 - GATEWAY_RESERVE * (1 - rank));
    if (gateway !== null) return gateway;
    const streams = group.members.reduce((sum, { name }) => sum + this.held(name), 0);
    if (streams >= engineLimit) return "engine-limit";
    const occupancy = this.#occupancyOf(group);
    const level = group.lowest + (group.highest - group.lowest) * rank;
    const outrun = occupancy >= RATE_FROM && rank < 1 && allowanceOf(group, nowMs, occupancy) < member.work;
    if (occupancy < level && !outrun) return null;
    if (occupancy >= group.highest) return "class-limit";
    if (occupancy < level) return "priority";
    if (this.held(member.name) >= member.part) return "priority";
    return betterRefused(member, nowMs) ? "priority" : null;
  }

  #gatewayRefusal(part: number): LimitReason | null {
    return this.#counts.all() >= this.#maxStreams * part ? "gateway-limit" : null;
  }

  #occupancyOf({ members, fullWps }: Group): number {
    let heldWps = 0;
    for (const { name, streamWps } of members) heldWps += this.held(name) * streamWps;
    return fullWps > 0 ? heldWps / fullWps : 0;
  }
}

/** 0 = lowest of its model's priorities, 1 = highest; 1 where there is one. */
function rankOf(priority: number, priorities: ReadonlySet<number>): number {
  if (priorities.size === 1) return 1;
  return [...priorities].filter((each) => each < priority).length / (priorities.size - 1);
}

/** Refilled up to now. */
function allowanceOf(group: Group, nowMs: number, occupancy: number): number {
  const refill = ((nowMs - group.atMs) / 1000) * group.ratePerS * Math.max(LEAST_RATE, 1 + FILLED - occupancy);
  group.atMs = nowMs;
  group.allowance = Math.min(group.allowanceMost, group.allowance + refill);
  return group.allowance;
}

function betterRefused({ priority, group }: Member, nowMs: number): boolean {
  for (const [other, atMs] of group.refusedAtMs) if (other > priority && nowMs - atMs < MAKE_WAY_MS) return true;
  return false;
}
