/** A page of metrics as an engine writes it: Prometheus text, format 0.0.4. */
export class MetricsPage {
  readonly #labels: string;
  readonly #lines: string[] = [];

  /** @param labels of every series */
  constructor(labels: Readonly<Record<string, string>>) {
    this.#labels = labelText(labels);
  }

  gauge(name: string, help: string, value: number): void {
    this.#head(name, "gauge", help);
    this.#line(name, "", value);
  }

  counter(name: string, help: string, value: number): void {
    this.#head(name, "counter", help);
    this.#line(name, "", value);
  }

  /** One series for each value of a label. */
  split(
    name: string,
    type: "gauge" | "counter",
    help: string,
    label: string,
    values: Readonly<Record<string, number>>,
  ) {
    this.#head(name, type, help);
    for (const [each, value] of Object.entries(values)) this.#line(name, labelText({ [label]: each }), value);
  }

  histogram(name: string, help: string, { buckets, sum, count }: HistogramValues): void {
    this.#head(name, "histogram", help);
    for (const [bound, total] of buckets) this.#line(`${name}_bucket`, "", total, labelText({ le: bound }));
    this.#line(`${name}_sum`, "", sum);
    this.#line(`${name}_count`, "", count);
  }

  text(): string {
    return `${this.#lines.join("\n")}\n`;
  }

  #head(name: string, type: string, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  #line(name: string, before: string, value: number, after = ""): void {
    const labels = [before, this.#labels, after].filter((each) => each !== "").join(",");
    this.#lines.push(labels === "" ? `${name} ${value}` : `${name}{${labels}} ${value}`);
  }
}

export interface HistogramValues {
  /** Bound as it is written, and how many are at most that; the last is `+Inf`. */
  readonly buckets: readonly (readonly [string, number])[];
  readonly sum: number;
  readonly count: number;
}

/** Cumulative buckets, as Prometheus wants them. */
export class Histogram implements HistogramValues {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  record(value: number, times = 1): void {
    const at = this.#bounds.findIndex((bound) => value <= bound);
    this.#counts[at === -1 ? this.#bounds.length : at]! += times;
    this.sum += value * times;
    this.count += times;
  }

  get buckets(): [string, number][] {
    let total = 0;
    return this.#counts.map((count, index) => {
      total += count;
      const bound = this.#bounds[index];
      return [bound === undefined ? "+Inf" : bound.toFixed(3).replace(/0{1,2}$/, ""), total];
    });
  }
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(",");
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
