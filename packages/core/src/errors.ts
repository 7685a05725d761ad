/**
 * The codes of every error thrown on purpose. A code never changes its meaning; the message carries the value that
 * was wrong.
 */
export type ErrorCode =
  | "bad_fleet"
  | "bad_profile"
  | "bad_network"
  | "bad_snapshot"
  | "bad_demand"
  | "bad_trace"
  | "bad_points"
  | "bad_log"
  | "bad_usage"
  | "bad_problem"
  | "native_unavailable"
  | "store_conflict"
  | "store_replaced"
  | "store_unreadable";

/**
 * Every error this project throws on purpose. Tell them apart by `code`.
 *
 * `is` compares names because a process can hold two copies of this package, and `instanceof` sees only its own.
 */
export class GuidevaneError extends Error {
  override readonly name: string = "GuidevaneError";
  readonly code: ErrorCode;
  /** What was wrong, one entry each; empty where the message says it all. */
  readonly problems: readonly InputProblem[];

  constructor(code: ErrorCode, message: string, options: ErrorOptions & { problems?: readonly InputProblem[] } = {}) {
    super(message, options);
    this.code = code;
    this.problems = options.problems ?? [];
  }

  static is(error: unknown): error is GuidevaneError {
    return error instanceof Error && error.name === "GuidevaneError";
  }
}

/** What kind of fault a piece of input has. A code never changes its meaning. */
export type InputProblemCode =
  | "syntax"
  | "unknown_key"
  | "missing_unit"
  | "missing_key"
  | "not_supported_yet"
  | "duplicate_id"
  | "unknown_profile"
  | "unknown_name"
  | "invalid_value"
  | "class_unservable"
  | "unreadable_file";

/** One thing wrong with a piece of input: where, what was there, and why it can't be. */
export interface InputProblem {
  readonly code: InputProblemCode;
  /** Dotted path into the document, such as `engines.use1-a.capacityWps`. */
  readonly path: string;
  /** The value found there, as JSON cut to 80 characters; `undefined` where nothing was. */
  readonly value: string | undefined;
  readonly message: string;
}

/** An `InputProblem` with its value as JSON, cut to 80 characters. */
export function problem(code: InputProblemCode, path: string, value: unknown, message: string): InputProblem {
  return { code, path, value: showValue(value), message };
}

/** `path: message (got value)`, the one line a person reads. */
export function showProblem({ path, value, message }: InputProblem): string {
  return `${path === "" ? "(top level)" : path}: ${message}${value === undefined ? "" : ` (got ${value})`}`;
}

const SHOWN_CHARACTERS = 80;

function showValue(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  // JSON has no NaN or infinity and would print null, which is not what was wrong.
  const text = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
