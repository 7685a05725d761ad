/** A stream that says so much without an event is passed on: its first event is a large one, and no error. */
export const HELD_MAX_BYTES = 65_536;

/** A refusal larger than this is passed on rather than kept back for another attempt; error pages of proxies fit in. */
export const KEPT_MAX_BYTES = 1_048_576;

/** An answer that says "not now" but does not end within this is given up for the next attempt. */
export const KEPT_MAX_MS = 1000;

/** How long a stream may go on after it has said that it is over. */
export const AFTER_TERMINATOR_MS = 1000;

/**
 * How long an answer may still be silent once its engine's port refuses connections. An engine that stops in good order
 * closes its port first and goes on with what it has; one whose core was killed leaves its streams open and says nothing.
 */
export const DEAD_SILENCE_MS = 2000;
