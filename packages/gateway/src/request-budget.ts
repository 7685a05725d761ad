import type { Next, RetryBudget, RetryRows } from "@guidevane/guard";
import type { Arrivals } from "./demand.ts";
import { type Exchange, isClientRetry } from "./exchange.ts";
import type { GatewayMetrics } from "./metrics.ts";

interface BudgetParts {
  readonly retries: RetryBudget;
  readonly demand: Arrivals;
  readonly metrics: GatewayMetrics;
}

/**
 * One request's dealings with its model's retry budget: the token of a retry is taken when the retry is decided on, since
 * from then on the engine's answer is kept back, and given back where there is no engine to try after all.
 */
export class RequestBudget {
  readonly #parts: BudgetParts;
  readonly #className: string | undefined;
  readonly #rows: RetryRows | undefined;
  readonly #work: number;
  readonly #earns: boolean;
  #taken = false;

  constructor(parts: BudgetParts, { className, routing, request }: Exchange) {
    this.#parts = parts;
    this.#className = className;
    this.#rows = className === undefined ? undefined : routing.retryRows(className);
    this.#work = className === undefined ? 1 : (routing.snapshot.classes[className]?.work ?? 1);
    // What a client tries again was paid for by its first request.
    this.#earns = !isClientRetry(request);
  }

  firstAttempt(): void {
    if (this.#rows !== undefined) this.#parts.retries.firstAttempt(this.#rows, this.#work, this.#earns);
  }

  /** What follows where the budget has its word: without a token nothing does, and the client gets the engine's own answer. */
  allow(next: Next): Next {
    if (next.retry !== "other" || next.free || this.#rows === undefined) return next;
    if (this.#parts.retries.take(this.#rows, this.#work)) {
      this.#taken = true;
      return next;
    }
    this.#parts.metrics.retries.inc({ result: "refused" });
    return { retry: false };
  }

  /** Whether the retry that was allowed is made. */
  settle(made: boolean): void {
    const { metrics, demand, retries } = this.#parts;
    if (made) {
      metrics.retries.inc({ result: "spent" });
      if (this.#className !== undefined) demand.retried(this.#className);
    } else if (this.#taken && this.#rows !== undefined) retries.giveBack(this.#rows, this.#work);
    this.#taken = false;
  }
}
