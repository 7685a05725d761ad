import { Counter, type CounterConfiguration, Histogram, type HistogramConfiguration } from "prom-client";

/**
 * A counter with one label or two that every request touches. Its counts are found by the labels' values alone and handed to
 * prom-client when somebody asks: that hashes an object of labels each time.
 */
export class Tally<A extends string, B extends string = never> {
  readonly #counts = new Map<string, Map<string, { count: number }>>();

  constructor(config: Omit<CounterConfiguration<A | B>, "labelNames"> & { readonly labelNames: [A] | [A, B] }) {
    const counts = this.#counts;
    const [first, second] = config.labelNames;
    new Counter<string>({
      ...config,
      collect() {
        this.reset();
        for (const [a, others] of counts)
          for (const [b, { count }] of others)
            this.inc({ [first]: a, ...(second === undefined ? {} : { [second]: b }) }, count);
      },
    });
  }

  /** @param b value of the second label; left out where there is one alone */
  inc(a: string, b = "", by = 1): void {
    let others = this.#counts.get(a);
    if (others === undefined) {
      others = new Map();
      this.#counts.set(a, others);
    }
    const cell = others.get(b);
    if (cell === undefined) others.set(b, { count: by });
    else cell.count += by;
  }
}

/** By bucket, the last one for what is beyond all of them; not cumulative. */
interface Observed {
  readonly counts: Float64Array;
  sum: number;
}

/** A histogram with one label or none, its counts found as those of a `Tally`. */
export class Spread<A extends string = never> extends Histogram<A> {
  readonly #label: A | undefined;
  readonly #name: string;
  readonly #buckets: readonly number[];
  readonly #observed = new Map<string, Observed>();

  constructor(
    config: Omit<HistogramConfiguration<A>, "labelNames"> & {
      readonly labelNames?: [A];
      /** Ascending. */
      readonly buckets: number[];
    },
  ) {
    super(config);
    this.#label = config.labelNames?.[0];
    this.#name = config.name;
    this.#buckets = config.buckets;
    // One without a label is shown from the beginning.
    if (this.#label === undefined) this.#of("");
  }

  /** @param a value of the label; empty where there is none */
  add(a: string, value: number): void {
    const observed = this.#of(a);
    let bucket = 0;
    while (bucket < this.#buckets.length && value > this.#buckets[bucket]!) bucket += 1;
    observed.counts[bucket]! += 1;
    observed.sum += value;
  }

  override async get(): ReturnType<Histogram<A>["get"]> {
    const own = await super.get();
    const values: object[] = [];
    for (const [a, { counts, sum }] of this.#observed) {
      const labels = this.#label === undefined ? {} : { [this.#label]: a };
      let count = 0;
      for (const [at, each] of counts.entries()) {
        count += each;
        const le = this.#buckets[at] ?? "+Inf";
        values.push({ labels: { le, ...labels }, value: count, metricName: `${this.#name}_bucket` });
      }
      values.push({ labels, value: sum, metricName: `${this.#name}_sum` });
      values.push({ labels, value: count, metricName: `${this.#name}_count` });
    }
    return { ...own, values: values as typeof own.values };
  }

  #of(a: string): Observed {
    let observed = this.#observed.get(a);
    if (observed === undefined) {
      observed = { counts: new Float64Array(this.#buckets.length + 1), sum: 0 };
      this.#observed.set(a, observed);
    }
    return observed;
  }
}
