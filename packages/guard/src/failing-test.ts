/**
 * Is an engine failing? A cumulative sum of log likelihood ratios over its answers, one bit each:
 *
 *     S ← max(0, S + ln(P₁(x) / P₀(x)))        P₀: faults at the base rate p₀        P₁: faults at p₁ = 20 %
 *
 * an alarm when S reaches the limit (Page 1954). Of all tests with as few false alarms it finds a change soonest in the
 * worst case (Moustakides 1986). A success takes −ln((1 − p₁)/(1 − p₀)) off; with that as the unit a fault adds
 *
 *     u = ln(p₁/p₀) ÷ −ln((1 − p₁)/(1 − p₀)),        rounded,
 *
 * so that S is a whole number and its run is a Markov chain of a few dozen states (Reynolds & Stoumbos 1999). The mean
 * number of answers to a false alarm comes exactly from that chain (Brook & Evans 1972), and the limit is the least whole
 * number that makes it long enough: nothing is approximated, and the error rates are those of the code that runs.
 */
export interface FailingDesign {
  /** p₀, faults per answer of a healthy engine. */
  readonly baseRate: number;
  /** What a fault adds; a success takes 1 off. */
  readonly up: number;
  /** An alarm at this or more. */
  readonly limit: number;
  /** Mean number of answers of a healthy engine to a false alarm. */
  readonly falseAlarmAfter: number;
}

/** p₁: the fault rate that the test is made to find; a worse one is found sooner. */
export const SICK_RATE = 0.2;

/** The least limit that gives a false alarm after `answers` answers or more on average. */
export function designFailing(baseRate: number, answers: number): FailingDesign {
  const unit = -Math.log((1 - SICK_RATE) / (1 - baseRate));
  const up = Math.max(1, Math.round(Math.log(SICK_RATE / baseRate) / unit));
  for (let limit = up + 1; ; limit++) {
    const falseAlarmAfter = meanRunLength(baseRate, up, limit);
    if (falseAlarmAfter >= answers) return { baseRate, up, limit, falseAlarmAfter };
  }
}

/**
 * Mean number of answers from S = 0 to an alarm when each is a fault with probability `rate`.
 *
 *     f(i) = 1 + p·f(i + u) + q·f(i − 1),    f(0) = 1 + p·f(u) + q·f(0),    f(i ≥ limit) = 0
 *
 * From the top down each f(i) is written as A_i + B_i·f(i − 1): f(i + u) is then a + b·f(i) by putting one into the other.
 */
export function meanRunLength(rate: number, up: number, limit: number): number {
  const a = new Float64Array(limit);
  const b = new Float64Array(limit);
  for (let state = limit - 1; state > 0; state--) {
    const [above, slope] = chain(a, b, state, up, limit);
    const share = 1 - rate * slope;
    a[state] = (1 + rate * above) / share;
    b[state] = (1 - rate) / share;
  }
  const [above, slope] = chain(a, b, 0, up, limit);
  return (1 + rate * above) / (rate * (1 - slope));
}

/** f(state + up) as [a, b] of a + b·f(state). */
function chain(a: Float64Array, b: Float64Array, state: number, up: number, limit: number): [number, number] {
  if (state + up >= limit) return [0, 0];
  let constant = 0;
  let slope = 1;
  for (let at = state + up; at > state; at--) {
    constant += slope * a[at]!;
    slope *= b[at]!;
  }
  return [constant, slope];
}

/** The running sum of one engine. */
export class FailingTest {
  #design: FailingDesign;
  #score = 0;
  /** Since S was last 0: what a person is shown. */
  #faults = 0;
  #answers = 0;

  constructor(design: FailingDesign) {
    this.#design = design;
  }

  /** Another base rate or limit; the sum keeps its part of the way to the limit. */
  set design(next: FailingDesign) {
    if (next === this.#design) return;
    this.#score = Math.min(next.limit, Math.ceil((this.#score * next.limit) / this.#design.limit));
    this.#design = next;
  }

  get design(): FailingDesign {
    return this.#design;
  }

  observe(fault: boolean): void {
    if (this.#score === 0) {
      this.#faults = 0;
      this.#answers = 0;
    }
    this.#answers += 1;
    if (fault) this.#faults += 1;
    // Held at the limit, so that the way back is as long after a hundred faults as after the first alarm.
    this.#score = fault ? Math.min(this.#design.limit, this.#score + this.#design.up) : Math.max(0, this.#score - 1);
  }

  get alarmed(): boolean {
    return this.#score >= this.#design.limit;
  }

  /** 0..1: the way to the limit. */
  get suspicion(): number {
    return this.#score / this.#design.limit;
  }

  get faults(): number {
    return this.#faults;
  }

  get answers(): number {
    return this.#answers;
  }

  /** ln of the likelihood ratio of sick to healthy. */
  get logRatio(): number {
    return this.#score * -Math.log((1 - SICK_RATE) / (1 - this.#design.baseRate));
  }
}
