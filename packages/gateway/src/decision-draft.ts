import type { Outcome, SnapshotCell } from "@guidevane/core";
import type { ShedReason } from "@guidevane/guard";
import type { AttemptRecord } from "./exchange.ts";
import type { RuledOutList } from "./ruled-out-lists.ts";

/** What is gathered of a request from its arrival to its end. One object a request, filled in as it goes. */
export interface DecisionDraft {
  readonly id: string;
  /** Hash of the id. */
  readonly tag: number;
  readonly path: string;
  /** By the wall clock. */
  readonly atMs: number;
  stream: boolean;
  first: boolean;
  className: string | null;
  /** A trusted header named it. */
  classNamed: boolean;
  model: string | null;
  tenant: string | null;
  /** Index into `KEY_SOURCES`. */
  keySource: number;
  slot: number | null;
  home: string | null;
  /** Its state word (`STATE`). */
  homeState: number | null;
  second: string | null;
  ruledOut: RuledOutList | null;
  version: number | null;
  /** The cell that it was routed in. */
  cell: SnapshotCell | null;
  /** Those that are over. */
  attempts: readonly AttemptRecord[];
  error: string | null;
  /** null = it was not shed. */
  shed: ShedReason | null;
  outcome: Outcome | null;
  ttftMs: number | null;
  /** The next one of `RunningDecisions` with a like tag. */
  next: DecisionDraft | null;
}

export function createDraft(id: string, tag: number, path: string, atMs: number, noKeySource: number): DecisionDraft {
  return {
    id,
    tag,
    path,
    atMs,
    stream: false,
    first: false,
    className: null,
    classNamed: false,
    model: null,
    tenant: null,
    keySource: noKeySource,
    slot: null,
    home: null,
    homeState: null,
    second: null,
    ruledOut: null,
    version: null,
    cell: null,
    attempts: NONE,
    error: null,
    shed: null,
    outcome: null,
    ttftMs: null,
    next: null,
  };
}

const NONE: readonly never[] = [];
