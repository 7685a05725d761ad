import type { Random } from "@guidevane/core";
import type { ClientOptions } from "./lab-options.ts";

/** A client that waits for ever and never tries again. */
export const ONCE: ClientOptions = { timeoutMs: 0, cancels: true, attempts: 1, backoffMs: 0 };

/** As Finagle's and Envoy's: some seconds of retries may be saved up. */
const TOKENS_MOST = 100;

/** Whether clients try again: each up to its attempts, and all of them together by one budget, where they have one. */
export class ClientRetries {
  readonly #client: ClientOptions;
  readonly #random: Random;
  #tokens = 0;

  constructor(client: ClientOptions, random: Random) {
    this.#client = client;
    this.#random = random;
  }

  /** A request is sent for the first time: what it adds to the budget. */
  firstAttempt(): void {
    this.#tokens = Math.min(TOKENS_MOST, this.#tokens + (this.#client.retryRatio ?? 0));
  }

  /** After so many attempts of one request: in how many ms it is sent again, which the budget pays; null = no more. */
  take(attempts: number): number | null {
    const { retryRatio, backoffMs } = this.#client;
    if (attempts >= this.#client.attempts) return null;
    if (retryRatio !== undefined) {
      if (this.#tokens < 1) return null;
      this.#tokens -= 1;
    }
    return backoffMs * (0.5 + this.#random());
  }
}
