/**
 * What engines say of themselves, by engine, as of the last poll that has come through. Every reader reads the same board:
 * polls are `everyMs` apart and take `delayMs` to arrive, so what is read is between `delayMs` and their sum old.
 */
export interface SignalBoard {
  readonly running: Float64Array;
  readonly waiting: Float64Array;
  /** Prompt tokens in line. */
  readonly waitingTokens: Float64Array;
  /** 0..1. */
  readonly kvUsage: Float64Array;
  /** Finished work ÷ capacity since the poll before, 0..1. */
  readonly utilisation: Float64Array;
  /** Mean of the answers that ended since the poll before; the last one known where none did. */
  readonly ttftMs: Float64Array;
  readonly latencyMs: Float64Array;
}

export function signalBoard(engines: number): SignalBoard {
  const column = (): Float64Array => new Float64Array(engines);
  return {
    running: column(),
    waiting: column(),
    waitingTokens: column(),
    kvUsage: column(),
    utilisation: column(),
    ttftMs: column(),
    latencyMs: column(),
  };
}

export function copyBoard(from: SignalBoard, to: SignalBoard): void {
  for (const name of Object.keys(from) as (keyof SignalBoard)[]) to[name].set(from[name]);
}
