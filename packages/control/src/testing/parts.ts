import type { OperatorState, Publication, Stamp, Store, StoredPublication } from "@guidevane/core";
import { GuidevaneError } from "@guidevane/core";
import type { PlanInputs } from "@guidevane/optimizer";
import type { ControlLogger } from "../log.ts";
import type { SolveOutcome, Solver, VerifyOutcome } from "../solver-pool.ts";
import { evenPublication } from "./fleet.ts";

/** A store in memory that can be told to fail. */
export class MemoryStore implements Store {
  stored: StoredPublication | null = null;
  operator: OperatorState = { engines: {} };
  failPut: Error | null = null;
  failGetVersion: Error | null = null;
  readonly kept: StoredPublication[] = [];

  async put(publication: Publication, expectedVersion: number): Promise<StoredPublication> {
    if (this.failPut !== null) throw this.failPut;
    const version = this.stored?.version ?? 0;
    if (version !== expectedVersion)
      throw new GuidevaneError("store_conflict", `at ${version}, not ${expectedVersion}`);
    const stamp: Stamp = { version: version + 1, epoch: 1 };
    const clusters = new Map([...publication.clusters].map(([name, each]) => [name, { ...each, ...stamp }]));
    this.stored = { ...publication, ...stamp, clusters };
    this.kept.push(this.stored);
    return this.stored;
  }

  async get(): Promise<StoredPublication | null> {
    return this.stored;
  }

  async getVersion(version: number): Promise<StoredPublication | null> {
    if (this.failGetVersion !== null) throw this.failGetVersion;
    return this.kept.find((each) => each.version === version) ?? null;
  }

  async versions(): Promise<readonly number[]> {
    return this.kept.map(({ version }) => version).reverse();
  }

  watch(): () => void {
    return () => {};
  }

  async putOperator(state: OperatorState): Promise<void> {
    this.operator = state;
  }

  async getOperator(): Promise<OperatorState> {
    return this.operator;
  }
}

/** A solver whose answer the test gives; by default the even publication. */
export class TestSolver implements Solver {
  readonly seen: PlanInputs[] = [];
  outcome: ((inputs: PlanInputs) => SolveOutcome | Promise<SolveOutcome>) | null = null;
  /** The next answers come after this. */
  beforeAnswer: () => Promise<void> = async () => {};
  verdict: VerifyOutcome = { kind: "faults", faults: [] };
  readonly #waiting: ((inputs: PlanInputs) => void)[] = [];

  async solve(inputs: PlanInputs): Promise<SolveOutcome> {
    this.seen.push(inputs);
    for (const resolve of this.#waiting.splice(0)) resolve(inputs);
    await this.beforeAnswer();
    return this.outcome?.(inputs) ?? solved(inputs);
  }

  async verify(): Promise<VerifyOutcome> {
    return this.verdict;
  }

  async close(): Promise<void> {}

  /** Inputs of the next solve to begin. */
  next(): Promise<PlanInputs> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** A gate that asked for a solve. */
export const OPEN = { held: false, why: "nothing was published before", certificate: null } as const;

export function solved(inputs: PlanInputs): SolveOutcome {
  const publication = evenPublication(inputs);
  const plan = {
    status: "solved",
    message: "",
    publication,
    gate: OPEN,
    warm: null,
    solver: "lp",
    degraded: "",
    solveMs: 3,
  } as const;
  return { kind: "plan", plan };
}

/** Keeps what was logged. */
export class TestLogger implements ControlLogger {
  readonly lines: { level: string; message: string }[] = [];

  info(_facts: object, message: string): void {
    this.lines.push({ level: "info", message });
  }

  warn(_facts: object, message: string): void {
    this.lines.push({ level: "warn", message });
  }

  error(_facts: object, message: string): void {
    this.lines.push({ level: "error", message });
  }

  get warnings(): string[] {
    return this.lines.filter(({ level }) => level !== "info").map(({ message }) => message);
  }
}
