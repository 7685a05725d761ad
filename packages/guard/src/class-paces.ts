import { ClassPace, type Judged, median } from "./class-pace.ts";

export type Measure = "ttft" | "tbot";

/** What judging needs to know of an engine, and tells it. */
export interface PacedEngine {
  /** Nothing speaks against its pace, so that its noise is what healthy engines have. */
  readonly keepsPace: boolean;
  paced(measure: Measure, judged: Judged, beganMs: number, nowMs: number): void;
}

/** One engine's log ratios in one class since the last tick. */
interface Observed {
  readonly engine: string;
  readonly of: MeasuredClass;
  readonly logRatios: number[];
  /** When the oldest of their attempts began. */
  beganMs: number;
}

interface MeasuredClass {
  readonly measure: Measure;
  readonly pace: ClassPace;
  readonly engines: Map<string, Observed>;
}

/** Times of all classes, by measure: gathered as they come, judged at each tick, where an engine's count as one, their median. */
export class ClassPaces {
  readonly #classes = { ttft: new Map<string, MeasuredClass>(), tbot: new Map<string, MeasuredClass>() };
  /** The classes in which an engine was seen: few of all that there are. */
  readonly #classesOf = new Map<string, Set<MeasuredClass>>();
  /** Those with log ratios, in the order in which the first of each came. */
  #observed: Observed[] = [];

  observe(measure: Measure, requestClass: string, engine: string, beganMs: number, logRatio: number): void {
    const observed = this.#of(measure, requestClass, engine);
    if (observed.logRatios.length === 0) {
      this.#observed.push(observed);
      observed.beganMs = beganMs;
    }
    observed.logRatios.push(logRatio);
    observed.beganMs = Math.min(observed.beganMs, beganMs);
  }

  judge(engines: ReadonlyMap<string, PacedEngine>, nowMs: number): void {
    const ticks = this.#observed.map(({ engine, of, logRatios, beganMs }) => {
      const logRatio = median(logRatios);
      logRatios.length = 0;
      of.pace.add(engine, logRatio, nowMs);
      return { engine, of, logRatio, beganMs };
    });
    this.#observed = [];
    for (const { engine, of, logRatio, beganMs } of ticks) {
      const told = engines.get(engine);
      if (told === undefined) {
        of.engines.delete(engine);
        continue;
      }
      const judged = of.pace.judge(engine, logRatio, told.keepsPace, nowMs);
      if (judged !== null) told.paced(of.measure, judged, beganMs, nowMs);
    }
  }

  /** The class's median log ratio; null where too little is known. */
  usual(measure: Measure, requestClass: string, nowMs: number): number | null {
    return this.#classes[measure].get(requestClass)?.pace.median(nowMs) ?? null;
  }

  /** The highest of an engine's places in its classes, a log ratio; null before enough was seen. */
  highest(measure: Measure, engine: string): number | null {
    let most: number | null = null;
    for (const { measure: measured, pace } of this.#classesOf.get(engine) ?? []) {
      if (measured !== measure) continue;
      const place = pace.place(engine);
      if (place !== null) most = Math.max(most ?? Number.NEGATIVE_INFINITY, place);
    }
    return most;
  }

  /** What was learned of an engine; what came since the last tick still counts for its class. */
  forget(engine: string): void {
    const classes = this.#classesOf.get(engine) ?? new Set();
    for (const of of classes) {
      of.pace.forget(engine);
      if ((of.engines.get(engine)?.logRatios.length ?? 0) > 0) continue;
      of.engines.delete(engine);
      classes.delete(of);
    }
    if (classes.size === 0) this.#classesOf.delete(engine);
  }

  /** Engines of which anything is kept. */
  get known(): number {
    return this.#classesOf.size;
  }

  #of(measure: Measure, requestClass: string, engine: string): Observed {
    const classes = this.#classes[measure];
    let of = classes.get(requestClass);
    if (of === undefined) {
      of = { measure, pace: new ClassPace(), engines: new Map() };
      classes.set(requestClass, of);
    }
    let observed = of.engines.get(engine);
    if (observed === undefined) {
      observed = { engine, of, logRatios: [], beganMs: 0 };
      of.engines.set(engine, observed);
      this.#classesOf.set(engine, (this.#classesOf.get(engine) ?? new Set()).add(of));
    }
    return observed;
  }
}
