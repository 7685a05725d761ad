/** What the control plane writes to: pino's own interface, or anything with the same three methods. */
export interface ControlLogger {
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** Logs a condition when it begins, when its kind changes and when it ends, and not while it lasts. */
export class ConditionLog {
  readonly #logger: ControlLogger;
  readonly #present = new Map<string, string>();

  constructor(logger: ControlLogger) {
    this.#logger = logger;
  }

  /** @param kind stays the same while the condition does; `message` may vary */
  begins(subject: string, kind: string, message: string, facts: object = {}): void {
    if (this.#present.get(subject) === kind) return;
    this.#present.set(subject, kind);
    this.#logger.warn({ ...facts, subject, condition: kind }, message);
  }

  ends(subject: string, message: string): void {
    if (this.#present.delete(subject)) this.#logger.info({ subject }, message);
  }
}
