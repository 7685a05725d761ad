/** More of an answer than this is passed on rather than kept back. */
export const KEPT_MAX_BYTES = 65_536;

/** An answer that says "not now" but does not end within this is given up for the next attempt. */
export const KEPT_MAX_MS = 1000;

/** How long a stream may go on after it has said that it is over. */
export const AFTER_TERMINATOR_MS = 1000;

/**
 * How long an answer may still be silent once its engine's port refuses connections. An engine that stops in good order
 * closes its port first and goes on with what it has; one whose core was killed leaves its streams open and says nothing.
 */
export const DEAD_SILENCE_MS = 2000;
