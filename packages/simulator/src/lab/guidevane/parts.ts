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
}
