import type { Outcome } from "@guidevane/core";
import type { ShedReason } from "@guidevane/guard";
import type { KeySource } from "@guidevane/selector";
import type { AttemptReport } from "./attempt-result.ts";

/** Why an engine could not take a request. */
export interface RuledOutEngine {
  readonly engine: string;
  readonly by: string;
  /** For a person: `lacks vision`. */
  readonly message: string;
}

/** An engine as routers see it. `probes-fail`: out by its probes alone, and still asked when nothing else is left. */
export type RoutedState = "ready" | "out" | "draining" | "cooling" | "probes-fail";

/** One attempt at an engine. Times in ms since it began; null where it did not come so far, or has no such phase. */
export interface DecisionAttempt
  extends Pick<AttemptReport, "outcome" | "status" | "connectMs" | "headMs" | "firstTokenMs" | "endMs" | "bytes"> {
  readonly engine: string;
  /** Why this engine; see `REASONS` of the selector. */
  readonly reason: string;
}

/** What one more request of the class costs the fleet at an engine, by the snapshot that routed it; ms. */
export interface DecisionAddends {
  readonly networkMs: number;
  readonly serviceMs: number;
  readonly congestionMs: number;
  readonly capacityPriceMs: number;
  readonly stabilityMs: number;
}

/** Why a request was shed, and what the plan that routed it said of its cell. */
export interface DecisionShed {
  readonly reason: ShedReason;
  /** Part of the cell's demand that the plan sheds, 0 to 1. */
  readonly plannedPart: number;
  /** What one more request of the cell costs the fleet by the plan; ms. */
  readonly priceMs: number;
}

/** `GET /v1/decisions/:id`: where a request went, and why. What is null was not known when the request ended. */
export interface Decision {
  readonly id: string;
  /** When it arrived, ISO 8601 UTC. */
  readonly at: string;
  readonly cluster: string;
  readonly class: string | null;
  /** What decided the class: a trusted header that names it, or the model and what the body uses. */
  readonly classBy: "header" | "model" | null;
  readonly model: string | null;
  readonly path: string;
  readonly stream: boolean;
  readonly tenant: string | null;
  readonly key: { readonly source: KeySource; readonly slot: number | null };
  readonly home: string | null;
  /** How home stood when the request was routed, and the part of its keys that it took (1 = all). */
  readonly homeState: { readonly state: RoutedState; readonly factor: number } | null;
  /** The candidate after home; null where home took the request at once. */
  readonly second: string | null;
  /** A conversation's first request. */
  readonly first: boolean;
  readonly ruledOut: readonly RuledOutEngine[];
  /** Version of the snapshot that routed it; 0 = bootstrap; null = it was not routed. */
  readonly snapshot: number | null;
  /** Of the engine of the last attempt, as are the addends. */
  readonly weight: number | null;
  readonly addends: DecisionAddends | null;
  readonly attempts: readonly DecisionAttempt[];
  /** null = it runs. */
  readonly outcome: Outcome | null;
  /** Code of the gateway's own refusal; null = it refused nothing. */
  readonly error: string | null;
  /** null = it was not shed. */
  readonly shed: DecisionShed | null;
  /** From its arrival to the first content of a stream. */
  readonly ttftMs: number | null;
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly cachedTokens: number | null;
  /** See `AnswerFacts`. */
  readonly tokensFrom: "usage" | "partial" | "events" | null;
}
