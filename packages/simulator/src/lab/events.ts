/** Kinds of events, and what their subject is. */
export const EVENT = {
  /** An attempt comes to an engine (mark). */
  atEngine: 0,
  /** Something is due at a replica; its mark is the replica's count of changes. */
  replica: 1,
  /** The last token of an attempt is at its client. */
  answered: 2,
  /** An attempt is back at its gateway without an answer; the mark says why. */
  back: 3,
  /** The client of a request has waited long enough for its attempt of the mark's number. */
  giveUp: 4,
  /** A request is sent that waited for something. */
  arrive: 5,
  /** A timer of the lab's clock. */
  timer: 6,
} as const;
