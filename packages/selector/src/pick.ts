import { StreamBound } from "./bound.ts";
import { rendezvousDraw, rendezvousScore, staysUnderFactor, surelyScoresAbove } from "./draw.ts";
import { Moves } from "./moves.ts";
import {
  HEAD,
  type HeadFacts,
  KEY_SOURCES,
  NO_ENGINE,
  NO_SLOT,
  OUT,
  ROUTE_STATUS,
  type RouteStatus,
  TRIED_MAX,
} from "./router.ts";
import { type SharedState, STATE } from "./shared-state.ts";
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
import { REASON, REASON_BY_VERDICT, VERDICT, VERDICTS } from "./verdict.ts";

/**
 * Chooses among a cell's candidates. The engine that a request is known to belong to comes first: the one that holds the
 * response it goes on from, or the one that its conversation was moved to. Then home, the owner of the key's slot; then the
 * other engines of the ring in weighted rendezvous order, then the reserves in theirs. The first candidate that is fine
 * takes it. If none is, the least wrong does: over its bound before penalised before cooling before out by probes alone.
 * An engine that is out, draining, tried, or unable to serve the body never does.
 *
 * With placement on, a conversation's first request goes to home or to the next candidate that is fine, whichever has
 * fewer streams for its part. What that choice or the bound moves is remembered; what is moved because an engine is out,
 * draining, cooling or penalised is not, and comes home.
 *
 * One object per thread: it has room for what a call finds, so that a call allocates nothing.
 */
export class Picker {
  readonly #words: Uint32Array;
  /** The same memory: V8 keeps signed words in registers. */
  readonly #signed: Int32Array;
  readonly #numbers: Float64Array;
  readonly #ring: Uint16Array;
  readonly #engines: Uint32Array;
  readonly #bound: StreamBound;
  readonly #moves: Moves;
  /** By verdict: the first candidate of that kind in the order visited, and its score in the walk under way. */
  readonly #firsts = new Int32Array(VERDICTS);
  readonly #found = new Int32Array(VERDICTS);
  readonly #scores = new Float64Array(VERDICTS);

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

  constructor(columns: Columns, state: SharedState) {
    const { words, numbers, ring } = columns;
    this.#words = words;
    this.#signed = new Int32Array(words.buffer, words.byteOffset, words.length);
    this.#numbers = numbers;
    this.#ring = ring;
    this.#engines = state.engines;
    this.#bound = new StreamBound(columns, state);
    this.#moves = new Moves(state);
  }

  /**
   * Reads class, key source and hashes, uses, context and `first` from `out`, and writes cell, engine, home, second, slot
   * and reason.
   */
  pick(head: HeadFacts, out: Uint32Array): RouteStatus {
    const words = this.#words;
    const cell = words[words[HEADER.classAt]! + out[OUT.requestClass]! * CLASS_WORDS + CLASS.cell]!;
    this.#begin(head.words, cell, out);
    out[OUT.cell] = words[cell + CELL.index]!;
    const home = this.#homeOf(cell, out);
    if (home !== NONE) out[OUT.home] = this.#slotOf(home);

    const followed = head.words[HEAD.followed]!;
    const mayMove = followed === 0 && out[OUT.keySource] !== NO_KEY;
    const nowS = head.words[HEAD.nowS]!;
    let known = NONE;
    let verdict: number = VERDICT.never;
    if (followed > 0) {
      known = this.#candidateOf(followed - 1, 0);
      verdict = known === NONE ? VERDICT.never : this.#verdict(known);
      // What it holds is nowhere else, whatever its share and its load.
      if (verdict === VERDICT.penalised) verdict = VERDICT.take;
      if (verdict !== VERDICT.take) known = NONE;
    } else if (mayMove) {
      const row = words[cell + CELL.inFlightRow]!;
      const slot = this.#moves.find(out[OUT.keyHash]!, out[OUT.keyHash2]!, row, nowS);
      if (slot >= 0) known = this.#candidateOf(slot, Number.MIN_VALUE);
      if (known === home) known = NONE;
      if (known !== NONE) verdict = this.#visit(known);
    }
    const isFirstChoice = head.words[HEAD.triedCount] === 0;
    let taker = NONE;
    if (known !== NONE && verdict === VERDICT.take) {
      taker = known;
      if (mayMove) this.#moves.touch(nowS);
    }

    let homeVerdict: number = VERDICT.never;
    let isChosen = false;
    if (taker === NONE && home !== NONE) {
      homeVerdict = this.#visit(home);
      if (homeVerdict === VERDICT.take) {
        taker = home;
        const places = head.words[HEAD.placement] === 1 && out[OUT.first] === 1 && mayMove && isFirstChoice;
        if (places && verdict !== VERDICT.over) {
          const second = this.#walk(0, this.#ringEngines, home, out);
          isChosen = second !== NONE && this.#bound.hasFewer(second, home);
          if (isChosen) taker = second;
        }
      }
    }
    if (taker === NONE) taker = this.#walk(0, this.#ringEngines, home, out);
    if (taker === NONE) taker = this.#walk(this.#ringEngines, this.#candidates, home, out);

    const isFine = taker !== NONE;
    for (let kind = VERDICT.over; kind <= VERDICT.probe && taker === NONE; kind++) taker = this.#firsts[kind]!;
    if (taker === NONE) return this.#anyEligible ? ROUTE_STATUS.exhausted : ROUTE_STATUS.noEligibleEngine;
    out[OUT.engine] = this.#slotOf(taker);

    const isBounded = verdict === VERDICT.over || homeVerdict === VERDICT.over;
    if (isFine && isFirstChoice && mayMove && taker !== known && (isChosen || isBounded)) {
      if (taker === home) this.#moves.forget();
      else this.#moves.remember(out[OUT.engine]!, nowS);
    }

    const isFailOpen = !isFine && taker === this.#firsts[VERDICT.probe];
    if (isFailOpen) out[OUT.reason] = REASON.failOpen;
    else if (!isFirstChoice) out[OUT.reason] = REASON.retry;
    else if (taker === known) out[OUT.reason] = REASON.followed;
    else if (words[cell + CELL.slots] === 0) out[OUT.reason] = REASON.bootstrap;
    else if (taker >= this.#ringEngines) out[OUT.reason] = REASON.reserve;
    else if (taker === home) out[OUT.reason] = REASON.home;
    else if (isChosen) out[OUT.reason] = REASON.second;
    else out[OUT.reason] = verdict === VERDICT.over ? REASON.bounded : REASON_BY_VERDICT[homeVerdict]!;
    return ROUTE_STATUS.ok;
  }

  #begin(head: Uint32Array, cell: number, out: Uint32Array): void {
    const words = this.#words;
    this.#head = head;
    this.#uses = out[OUT.needs]!;
    this.#contextTokens = out[OUT.contextTokens]!;
    this.#hash2 = out[OUT.keyHash2]! | 0;
    this.#candidateAt = words[cell + CELL.candidateAt]!;
    this.#numberAt = words[cell + CELL.numberAt]!;
    this.#ringEngines = words[cell + CELL.engines]!;
    this.#candidates = this.#ringEngines + words[cell + CELL.reserves]!;
    this.#bound.begin(cell);
    this.#anyEligible = false;
    this.#firsts.fill(NONE);
  }

  /** The owner of the key's slot; without a ring the engine with the least score, whatever its state. */
  #homeOf(cell: number, out: Uint32Array): number {
    const words = this.#words;
    const slots = words[cell + CELL.slots]!;
    if (slots > 0) {
      // The top bits: slots is a power of two, and the product is exact in a double.
      const slot = Math.floor((out[OUT.keyHash]! * slots) / 4_294_967_296);
      out[OUT.slot] = slot;
      return this.#ring[words[cell + CELL.ringAt]! + slot]!;
    }
    out[OUT.slot] = NO_SLOT;
    let home = NONE;
    let least = Number.POSITIVE_INFINITY;
    for (let candidate = 0; candidate < this.#ringEngines; candidate++) {
      const weight = this.#weightOf(candidate);
      const draw = this.#drawOf(candidate);
      if (!(weight > 0) || surelyScoresAbove(draw, weight, least)) continue;
      const score = rendezvousScore(draw, weight);
      if (score < least) {
        least = score;
        home = candidate;
      }
    }
    return home;
  }

  /**
   * Of candidates `from .. to`, but home, the one with the least score that is fine. In one pass: those that score above
   * the best found so far are neither it nor second, and need no more than a draw. Where none is fine, the first of each
   * kind is remembered.
   */
  #walk(from: number, to: number, home: number, out: Uint32Array): number {
    const found = this.#found.fill(NONE);
    const scores = this.#scores.fill(Number.POSITIVE_INFINITY);
    const signed = this.#signed;
    const numbers = this.#numbers;
    const hash2 = this.#hash2;
    let best = Number.POSITIVE_INFINITY;
    for (let candidate = from; candidate < to; candidate++) {
      const weight = numbers[this.#numberAt + candidate * CANDIDATE_NUMBERS + NUMBER.weight]!;
      const draw = rendezvousDraw(hash2, signed[this.#candidateAt + candidate * CANDIDATE_WORDS + CANDIDATE.idHash]!);
      if (surelyScoresAbove(draw, weight, best) || candidate === home || !(weight > 0)) continue;
      let verdict = this.#verdict(candidate);
      if (verdict >= VERDICT.out) continue;
      const score = rendezvousScore(draw, weight);
      if (!(score < best)) continue;
      if (verdict === VERDICT.take && this.#bound.isOver(candidate)) verdict = VERDICT.over;
      if (score < scores[verdict]!) {
        scores[verdict] = score;
        found[verdict] = candidate;
        best = scores[VERDICT.take]!;
      }
    }
    let second: number = VERDICT.take;
    for (let kind = VERDICT.over; kind <= VERDICT.probe; kind++) {
      if (scores[kind]! < scores[second]!) second = kind;
      if (this.#firsts[kind] === NONE) this.#firsts[kind] = found[kind]!;
    }
    if (out[OUT.second] === NO_ENGINE && found[second] !== NONE) out[OUT.second] = this.#slotOf(found[second]!);
    return found[VERDICT.take]!;
  }

  /** The candidate's verdict; one that is not fine is remembered, the first of its kind. */
  #visit(candidate: number): number {
    let verdict = this.#verdict(candidate);
    if (verdict === VERDICT.take && this.#bound.isOver(candidate)) verdict = VERDICT.over;
    if (verdict < VERDICT.out && this.#firsts[verdict] === NONE) this.#firsts[verdict] = candidate;
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
    const factor = state & STATE.factorMask;
    if (factor === STATE.factorMask) return VERDICT.take;
    return staysUnderFactor(this.#hash2, words[row + CANDIDATE.idHash]!, factor) ? VERDICT.take : VERDICT.penalised;
  }

  /** The candidate that is the engine of a state slot. @param least the weight that it must have */
  #candidateOf(slot: number, least: number): number {
    const words = this.#words;
    for (let candidate = 0; candidate < this.#candidates; candidate++) {
      if (words[this.#row(candidate) + CANDIDATE.slot] === slot && this.#weightOf(candidate) >= least) return candidate;
    }
    return NONE;
  }

  #slotOf(candidate: number): number {
    return this.#words[this.#row(candidate) + CANDIDATE.slot]!;
  }

  #weightOf(candidate: number): number {
    return this.#numbers[this.#numberAt + candidate * CANDIDATE_NUMBERS + NUMBER.weight]!;
  }

  #drawOf(candidate: number): number {
    return rendezvousDraw(this.#hash2, this.#signed[this.#row(candidate) + CANDIDATE.idHash]!);
  }

  #row(candidate: number): number {
    return this.#candidateAt + candidate * CANDIDATE_WORDS;
  }
}

const NONE = -1;
const EMPTY = new Uint32Array(0);
const NO_KEY = KEY_SOURCES.indexOf("none");
