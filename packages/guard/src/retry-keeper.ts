import type { ClusterSnapshot } from "@guidevane/core";
import { RateMeter } from "./rate-meter.ts";
import {
  BUDGET_ROWS,
  BUDGET_WORDS,
  CELL_ROWS,
  CELLS_AT,
  type RetryRows,
  retryRatio,
  SCALE,
  WORD,
} from "./retry-budget.ts";
import { risenLoads } from "./risen-loads.ts";
import { type CellFlow, utilisationParts } from "./utilisation.ts";

/** What the fleet file says of retry budgets. */
export interface RetrySettings {
  /** Most tokens that a first attempt earns. */
  readonly maxRatio: number;
  /** Tokens that come in 10 s without any attempt. */
  readonly floorPer10s: number;
  /** Tokens that a model begins with. */
  readonly startTokens: number;
}

/** A budget holds this many tokens, or what it earns in 10 s where that is more. */
const MOST_LEAST = 10;
const EARNING_KEPT_S = 10;

/** The mean work of a model's first attempts follows over about this many of them. */
const MEAN_ATTEMPTS = 200;

interface Model {
  readonly row: number;
  readonly rate: RateMeter;
  meanWork: number;
  /** Parts of a thousandth that time has given and that are still owed, in tokens. */
  owed: number;
}

interface Cell {
  readonly row: number;
  readonly rate: RateMeter;
  /** Own rate of first attempts when the present snapshot came; null = none was known yet. */
  plannedRps: number | null;
}

/** Decides what the budgets of a process earn and hold; one a process, on one thread. Keeps time by being told it. */
export class RetryKeeper {
  readonly #words: Int32Array;
  readonly #settings: () => RetrySettings;
  readonly #models = new Map<string, Model>();
  readonly #cells = new Map<string, Cell>();
  #snapshot: ClusterSnapshot | null = null;
  /** Null until it is asked for. */
  #risen: ReadonlyMap<string, number> | null = null;
  #atMs: number;

  constructor(memory: SharedArrayBuffer, settings: () => RetrySettings, nowMs: number) {
    this.#words = new Int32Array(memory);
    this.#settings = settings;
    this.#atMs = nowMs;
  }

  /** Rows of each class of a snapshot, by name; the same for as long as the process lives. */
  rowsOf(snapshot: ClusterSnapshot): ReadonlyMap<string, RetryRows> {
    return new Map(
      Object.entries(snapshot.classes).map(([name, { model }]) => [
        name,
        { budget: this.#modelOf(model).row, cell: this.#cellOf(name).row },
      ]),
    );
  }

  /** Requests are routed by it from now on: what its plan expects is compared with the rates of now. */
  adopt(snapshot: ClusterSnapshot): void {
    this.#snapshot = snapshot;
    this.#risen = null;
    for (const name of Object.keys(snapshot.classes)) {
      const cell = this.#cellOf(name);
      cell.plannedRps = cell.rate.rps > 0 ? cell.rate.rps : null;
    }
  }

  /**
   * Looks at what was attempted since the last call: adds what time gives, and sets what a first attempt earns from now on
   * and what budgets hold.
   *
   * @param factorOf part of an engine's share that it takes now, 0..1
   */
  refresh(nowMs: number, factorOf: (engine: string) => number): void {
    const parts = this.refreshParts(nowMs, factorOf);
    while (parts.next().done !== true);
  }

  /** The same in small parts, for a thread that has more to do: it may yield between them. */
  *refreshParts(nowMs: number, factorOf: (engine: string) => number): Generator<void, void> {
    const passedMs = Math.max(0, nowMs - this.#atMs);
    this.#atMs = nowMs;
    this.#risen = null;
    for (const { row, rate } of this.#cells.values())
      rate.add(Atomics.exchange(this.#words, CELLS_AT + row, 0), passedMs);
    const worst = yield* this.#worstByModel(factorOf);
    const { maxRatio, floorPer10s } = this.#settings();
    for (const [name, model] of this.#models) {
      const at = model.row * BUDGET_WORDS;
      this.#noteAttempts(model, at, passedMs);
      const ratio = retryRatio(worst.get(name) ?? 0, maxRatio);
      const most = Math.max(MOST_LEAST, (ratio * model.rate.rps + floorPer10s / 10) * EARNING_KEPT_S);
      this.#store(at + WORD.earns, ratio);
      this.#store(at + WORD.most, most);
      model.owed += (floorPer10s * passedMs) / 10_000;
      const thousandths = Math.floor(model.owed * SCALE);
      model.owed -= thousandths / SCALE;
      this.#addUpTo(at, thousandths, Math.round(most * SCALE));
    }
  }

  /** An engine's load beyond the plan, work units/s, by the last look: `risenLoads`. */
  risenWps(engine: string): number {
    if (this.#snapshot === null) return 0;
    this.#risen ??= risenLoads(this.#snapshot, (name) => this.#flowOf(name));
    return this.#risen.get(engine) ?? 0;
  }

  /** Tokens of each model, by name. */
  tokens(): ReadonlyMap<string, number> {
    return new Map(
      [...this.#models].map(([name, { row }]) => [
        name,
        Atomics.load(this.#words, row * BUDGET_WORDS + WORD.tokens) / SCALE,
      ]),
    );
  }

  #noteAttempts(model: Model, at: number, passedMs: number): void {
    const attempts = Atomics.exchange(this.#words, at + WORD.attempts, 0);
    const work = Atomics.exchange(this.#words, at + WORD.work, 0) / SCALE;
    model.rate.add(attempts, passedMs);
    if (attempts === 0) return;
    const follow = model.meanWork === 0 ? 1 : 1 - Math.exp(-attempts / MEAN_ATTEMPTS);
    model.meanWork += follow * (work / attempts - model.meanWork);
    this.#store(at + WORD.meanWork, model.meanWork);
  }

  /** ρ of each model's worst cell. */
  *#worstByModel(factorOf: (engine: string) => number): Generator<void, Map<string, number>> {
    const worst = new Map<string, number>();
    const snapshot = this.#snapshot;
    if (snapshot === null) return worst;
    const flowOf = (name: string): CellFlow => this.#flowOf(name);
    for (const [name, utilisation] of yield* utilisationParts(snapshot, flowOf, factorOf)) {
      const model = snapshot.classes[name]?.model;
      if (model !== undefined) worst.set(model, Math.max(worst.get(model) ?? 0, utilisation));
    }
    return worst;
  }

  #flowOf(name: string): CellFlow {
    const { rate, plannedRps } = this.#cellOf(name);
    return { rps: rate.rps, plannedRps };
  }

  #modelOf(name: string): Model {
    let model = this.#models.get(name);
    if (model === undefined) {
      model = { row: Math.min(this.#models.size, BUDGET_ROWS - 1), rate: new RateMeter(), meanWork: 0, owed: 0 };
      this.#models.set(name, model);
      const { maxRatio, startTokens } = this.#settings();
      const at = model.row * BUDGET_WORDS;
      this.#store(at + WORD.tokens, startTokens);
      this.#store(at + WORD.earns, maxRatio);
      this.#store(at + WORD.most, Math.max(MOST_LEAST, startTokens));
    }
    return model;
  }

  #cellOf(name: string): Cell {
    let cell = this.#cells.get(name);
    if (cell === undefined) {
      cell = { row: Math.min(this.#cells.size, CELL_ROWS - 1), rate: new RateMeter(), plannedRps: null };
      this.#cells.set(name, cell);
    }
    return cell;
  }

  #addUpTo(at: number, amount: number, most: number): void {
    for (;;) {
      const tokens = Atomics.load(this.#words, at + WORD.tokens);
      const next = Math.min(tokens + amount, most);
      if (Atomics.compareExchange(this.#words, at + WORD.tokens, tokens, next) === tokens) return;
    }
  }

  #store(at: number, value: number): void {
    Atomics.store(this.#words, at, Math.round(Math.min(value, LARGEST) * SCALE));
  }
}

/** In thousandths it still is an Int32. */
const LARGEST = 2_000_000;
