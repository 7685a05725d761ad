import type { PolicyWorld } from "../policy.ts";

/** Which of a gateway's parts act. All of them do in production; experiments and tests take some away. */
export interface GuidevaneParts {
  /** First requests by two choices, where a cluster has one gateway; else all go home. */
  readonly placement: "auto" | "home";
  /** Streams are held against their engine's part. */
  readonly bound: boolean;
  /** Conversations that were moved are remembered. */
  readonly memory: boolean;
  readonly penalties: boolean;
  /** Requests are shed by plan and by streams held. */
  readonly admission: boolean;
  /** Retries have a budget; else the number of attempts alone limits them. */
  readonly budget: boolean;
  /** Who chooses in the router's stead, one for each gateway; null = nobody. For yardsticks: production has none. */
  readonly choose: ((world: PolicyWorld) => Choose) | null;
}

/** Gives one of `choices.fine`, or the router's own choice. */
export type Choose = (request: number, choices: Choices) => number;

/** What a gateway could do with a request now. */
export interface Choices {
  /** What the router chose. */
  readonly routed: number;
  /** Engines with a share that are well (or the router's choice), not tried, and not over the bound. */
  readonly fine: readonly number[];
  /** Whether `one` has fewer streams for its part than `other`. */
  hasFewer(one: number, other: number): boolean;
}
