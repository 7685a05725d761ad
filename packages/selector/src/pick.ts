import { StreamBound } from "./bound.ts";
import { rendezvousScore, staysUnderFactor } from "./draw.ts";
import {
  HEAD,
  type HeadFacts,
  NO_ENGINE,
  NO_SLOT,
  OUT,
  REASONS,
  type Reason,
  ROUTE_STATUS,
  type RouteStatus,
  type SharedState,
  STATE,
  TRIED_MAX,
} from "./router.ts";
import {
  CANDIDATE,
  CANDIDATE_NUMBERS,
  CANDIDATE_WORDS,
  CELL,
  CLASS,
  CLASS_WORDS,
  type Columns,
  HEADER,
  NO_LIMIT,
  NUMBER,
} from "./table-columns.ts";

/**
 * Chooses among a cell's candidates. Home, the owner of the key's slot, takes the request unless it may not or should not;
 * then the other engines of the ring in weighted rendezvous order, then the reserves in theirs. The first candidate that
 * is fine takes it. If none is, the least wrong does: over its bound before penalised before cooling before out by probes
 * alone. An engine that is out, draining, tried, or unable to serve the body never does.
 *
 * One object per thread: it has room for what a call finds, so that a call allocates nothing.
 */
export class Picker {
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  readonly #ring: Uint16Array;
  readonly #engines: Uint32Array;
  readonly #bound: StreamBound;
  readonly #scores: Float64Array;

  // Of the call in progress.
  #head: Uint32Array = EMPTY;
  #uses = 0;
  #contextTokens = 0;
  #hash2 = 0;
  #candidateAt = 0;
  #numberAt = 0;
  #ringEngines = 0;
  #candidates = 0;
  #anyEligible = false;
  #firstOver = NONE;
  #firstPenalised = NONE;
  #firstCooling = NONE;
  #firstProbe = NONE;

  constructor(columns: Columns, state: SharedState) {
    const { words, numbers, ring } = columns;
    this.#words = words;
    this.#numbers = numbers;
    this.#ring = ring;
    this.#engines = state.engines;
    this.#bound = new StreamBound(columns, state);
    this.#scores = new Float64Array(mostCandidates(words));
  }

  /** Reads class, key hashes, uses and context from `out`, and writes cell, engine, home, second, slot and reason. */
  pick(head: HeadFacts, out: Uint32Array): RouteStatus {
    const words = this.#words;
    const cell = words[words[HEADER.classAt]! + out[OUT.requestClass]! * CLASS_WORDS + CLASS.cell]!;
    this.#begin(head.words, cell, out);
    out[OUT.cell] = words[cell + CELL.index]!;

    const slots = words[cell + CELL.slots]!;
    let home: number;
    if (slots > 0) {
      // The top bits: slots is a power of two, and the product is exact in a double.
      const slot = Math.floor((out[OUT.keyHash]! * slots) / 4_294_967_296);
      out[OUT.slot] = slot;
      home = this.#ring[words[cell + CELL.ringAt]! + slot]!;
    } else {
      out[OUT.slot] = NO_SLOT;
      home = this.#leastScore();
    }

    let homeVerdict: number = VERDICT.never;
    let taker = NONE;
    if (home !== NONE) {
      out[OUT.home] = this.#slotOf(home);
      homeVerdict = this.#visit(home);
      if (homeVerdict === VERDICT.take) taker = home;
    }
    if (taker === NONE) taker = this.#walk(0, this.#ringEngines, home, out);
    if (taker === NONE) taker = this.#walk(this.#ringEngines, this.#candidates, home, out);
    const failOpen =
      taker === NONE && this.#firstOver === NONE && this.#firstPenalised === NONE && this.#firstCooling === NONE;
    if (taker === NONE) taker = this.#firstOver;
    if (taker === NONE) taker = this.#firstPenalised;
    if (taker === NONE) taker = this.#firstCooling;
    if (taker === NONE) taker = this.#firstProbe;
    if (taker === NONE) return this.#anyEligible ? ROUTE_STATUS.exhausted : ROUTE_STATUS.noEligibleEngine;

    out[OUT.engine] = this.#slotOf(taker);
    if (failOpen) out[OUT.reason] = REASON.failOpen;
    else if (head.words[HEAD.triedCount]! > 0) out[OUT.reason] = REASON.retry;
    else if (slots === 0) out[OUT.reason] = REASON.bootstrap;
    else if (taker >= this.#ringEngines) out[OUT.reason] = REASON.reserve;
    else if (taker === home) out[OUT.reason] = REASON.home;
    else out[OUT.reason] = REASON_BY_VERDICT[homeVerdict]!;
    return ROUTE_STATUS.ok;
  }

  #begin(head: Uint32Array, cell: number, out: Uint32Array): void {
    const words = this.#words;
    this.#head = head;
    this.#uses = out[OUT.needs]!;
    this.#contextTokens = out[OUT.contextTokens]!;
    this.#hash2 = out[OUT.keyHash2]!;
    this.#candidateAt = words[cell + CELL.candidateAt]!;
    this.#numberAt = words[cell + CELL.numberAt]!;
    this.#ringEngines = words[cell + CELL.engines]!;
    this.#candidates = this.#ringEngines + words[cell + CELL.reserves]!;
    this.#bound.begin(cell);
    this.#anyEligible = false;
    this.#firstOver = NONE;
    this.#firstPenalised = NONE;
    this.#firstCooling = NONE;
    this.#firstProbe = NONE;
  }

  /** Visits candidates `from .. to`, but home, in rendezvous order, until one is fine. */
  #walk(from: number, to: number, home: number, out: Uint32Array): number {
    const scores = this.#scores;
    for (let candidate = from; candidate < to; candidate++) {
      scores[candidate] = Number.POSITIVE_INFINITY;
      if (candidate === home) continue;
      const weight = this.#numbers[this.#numberAt + candidate * CANDIDATE_NUMBERS + NUMBER.weight]!;
      // One that can't be chosen needs no score, only to be known as one that could have served.
      if (weight > 0 && this.#verdict(candidate) < VERDICT.out) scores[candidate] = this.#score(candidate, weight);
    }
    for (;;) {
      let next = NONE;
      let least = Number.POSITIVE_INFINITY;
      for (let candidate = from; candidate < to; candidate++) {
        if (scores[candidate]! < least) {
          least = scores[candidate]!;
          next = candidate;
        }
      }
      if (next === NONE) return NONE;
      scores[next] = Number.POSITIVE_INFINITY;
      if (out[OUT.second] === NO_ENGINE) out[OUT.second] = this.#slotOf(next);
      if (this.#visit(next) === VERDICT.take) return next;
    }
  }

  /** Of the ring's engines the one with the least score, whatever its state: home where there is no ring. */
  #leastScore(): number {
    let home = NONE;
    let least = Number.POSITIVE_INFINITY;
    for (let candidate = 0; candidate < this.#ringEngines; candidate++) {
      const weight = this.#numbers[this.#numberAt + candidate * CANDIDATE_NUMBERS + NUMBER.weight]!;
      if (!(weight > 0)) continue;
      const score = this.#score(candidate, weight);
      if (score < least) {
        least = score;
        home = candidate;
      }
    }
    return home;
  }

  #score(candidate: number, weight: number): number {
    return rendezvousScore(this.#hash2, this.#words[this.#row(candidate) + CANDIDATE.idHash]!, weight);
  }

  /** The candidate's verdict; one that is not fine is remembered, the first of its kind. */
  #visit(candidate: number): number {
    let verdict = this.#verdict(candidate);
    if (verdict === VERDICT.take && this.#bound.isOver(candidate)) verdict = VERDICT.over;
    if (verdict === VERDICT.over && this.#firstOver === NONE) this.#firstOver = candidate;
    else if (verdict === VERDICT.penalised && this.#firstPenalised === NONE) this.#firstPenalised = candidate;
    else if (verdict === VERDICT.cooling && this.#firstCooling === NONE) this.#firstCooling = candidate;
    else if (verdict === VERDICT.probe && this.#firstProbe === NONE) this.#firstProbe = candidate;
    return verdict;
  }

  /** All but the bound. */
  #verdict(candidate: number): number {
    const words = this.#words;
    const row = this.#row(candidate);
    if ((words[row + CANDIDATE.lacks]! & this.#uses) !== 0) return VERDICT.never;
    const most = words[row + CANDIDATE.maxContextTokens]!;
    // The context is an estimate, so half as much again is let through.
    if (most !== NO_LIMIT && this.#contextTokens * 2 > most * 3) return VERDICT.never;
    const residency = this.#head[HEAD.residency]!;
    if (residency !== 0 && words[row + CANDIDATE.residency] !== residency) return VERDICT.never;
    this.#anyEligible = true;

    const slot = words[row + CANDIDATE.slot]!;
    const tried = Math.min(this.#head[HEAD.triedCount]!, TRIED_MAX);
    for (let i = 0; i < tried; i++) if (this.#head[HEAD.tried + i] === slot) return VERDICT.never;
    const state = Atomics.load(this.#engines, slot);
    if ((state & (STATE.out | STATE.draining)) !== 0) return VERDICT.out;
    if ((state & STATE.outByProbe) !== 0) return VERDICT.probe;
    if ((state & STATE.cooling) !== 0) return VERDICT.cooling;
    if (!staysUnderFactor(this.#hash2, words[row + CANDIDATE.idHash]!, state & STATE.factorMask))
      return VERDICT.penalised;
    return VERDICT.take;
  }

  #slotOf(candidate: number): number {
    return this.#words[this.#row(candidate) + CANDIDATE.slot]!;
  }

  #row(candidate: number): number {
    return this.#candidateAt + candidate * CANDIDATE_WORDS;
  }
}

const NONE = -1;
const EMPTY = new Uint32Array(0);

const VERDICT = { take: 0, over: 1, penalised: 2, cooling: 3, probe: 4, out: 5, never: 6 } as const;

const place = (reason: Reason): number => REASONS.indexOf(reason);

/** Places in `REASONS`. */
const REASON = {
  home: place("home"),
  second: place("second"),
  bounded: place("bounded"),
  penalised: place("penalised"),
  ejected: place("ejected"),
  cooled: place("cooled"),
  reserve: place("reserve"),
  retry: place("retry"),
  failOpen: place("fail-open"),
  bootstrap: place("bootstrap"),
} as const;

/** Why another than home took it, by home's verdict. Home unable to serve this body is no fault: the next one is `second`. */
const REASON_BY_VERDICT: Uint8Array = Uint8Array.of(
  REASON.home,
  REASON.bounded,
  REASON.penalised,
  REASON.cooled,
  REASON.ejected,
  REASON.ejected,
  REASON.second,
);

function mostCandidates(words: Uint32Array): number {
  let most = 0;
  const classAt = words[HEADER.classAt]!;
  for (let i = 0; i < words[HEADER.classes]!; i++) {
    const cell = words[classAt + i * CLASS_WORDS + CLASS.cell]!;
    if (cell !== 0) most = Math.max(most, words[cell + CELL.engines]! + words[cell + CELL.reserves]!);
  }
  return most;
}
