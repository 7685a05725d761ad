import { OUTCOMES } from "@guidevane/core";
import type { ShedReason } from "@guidevane/guard";
import { KEY_SOURCES, REASONS, type Reason } from "@guidevane/selector";
import type { Decision, DecisionAddends, DecisionAttempt, DecisionShed, RuledOutEngine } from "./decision.ts";
import type { DecisionDraft } from "./decision-draft.ts";
import { RecordReader, type RecordWriter } from "./record-bytes.ts";
import { factorOf, routedStateOf } from "./routed-state.ts";

/** A record's attempts at most; requests are never configured to make more. */
const ATTEMPTS_MAX = 12;

/** A record is shorter than this: some texts of 255 bytes and a few numbers, for the request and for each attempt. */
export const RECORD_BYTES: number = 2560 + ATTEMPTS_MAX * 290;

const FLAG = { stream: 1, first: 2, classNamed: 4 } as const;
const TOKENS_FROM = ["usage", "partial", "events"] as const;
/** In a byte that is an index into a list. */
const NONE = 0xff;

/** Writes what was gathered of a request. The first field is its id: `idOfRecord`. @param list entry of its ruled-out list */
export function writeRecord(to: RecordWriter, draft: DecisionDraft, list: number): void {
  const { attempts, cell } = draft;
  const answer = attempts.at(-1)?.answer ?? null;
  to.text(draft.id);
  to.number(list);
  to.text(draft.path);
  to.number(draft.atMs);
  to.byte((draft.stream ? FLAG.stream : 0) | (draft.first ? FLAG.first : 0) | (draft.classNamed ? FLAG.classNamed : 0));
  to.text(draft.className);
  to.text(draft.model);
  to.text(draft.tenant);
  to.byte(draft.keySource);
  to.count(draft.slot);
  to.text(draft.home);
  to.count(draft.homeState);
  to.text(draft.second);
  to.number(draft.version);
  to.text(draft.error);
  writeShed(to, draft);
  to.byte(draft.outcome === null ? NONE : OUTCOMES.indexOf(draft.outcome));
  to.ms(draft.ttftMs);
  to.count(answer?.promptTokens ?? null);
  to.count(answer?.completionTokens ?? null);
  to.count(answer?.cachedTokens ?? null);
  const from = answer?.tokensFrom ?? null;
  to.byte(from === null ? NONE : TOKENS_FROM.indexOf(from));

  const last = attempts.at(-1);
  const place = cell === null || last === undefined ? -1 : cell.engines.indexOf(last.engine);
  // A reserve is in the cell without a weight, and an engine that is not in it has none either.
  to.number(last === undefined || cell === null ? null : (cell.weights[place] ?? 0));
  const addends = cell?.addends[place];
  for (let i = 0; i < ADDENDS; i++) to.ms(addends?.[i] ?? null);

  const kept = attempts.slice(-ATTEMPTS_MAX);
  to.byte(kept.length);
  for (const each of kept) {
    to.text(each.engine);
    to.byte(REASONS.indexOf(each.reason as Reason));
    to.byte(OUTCOMES.indexOf(each.outcome));
    to.count(each.status);
    to.ms(each.connectMs);
    to.ms(each.headMs);
    to.ms(each.firstTokenMs);
    to.ms(each.endMs);
    to.number(each.bytes);
  }
}

const ADDENDS = 5;

/** One byte for most requests, which are not shed. */
function writeShed(to: RecordWriter, { shed, cell }: DecisionDraft): void {
  to.text(shed);
  if (shed === null) return;
  to.number(cell?.shed ?? 0);
  to.ms(cell?.priceMs ?? 0);
}

function readShed(from: RecordReader): DecisionShed | null {
  const reason = from.text() as ShedReason | null;
  if (reason === null) return null;
  return { reason, plannedPart: from.number() ?? 0, priceMs: from.ms() ?? 0 };
}

export function idOfRecord(record: Buffer): string | null {
  return new RecordReader(record).text();
}

/** @param ruledOut reads a list by its entry */
export function readRecord(
  record: Buffer,
  cluster: string,
  ruledOut: (list: number) => readonly RuledOutEngine[],
): Decision {
  const from = new RecordReader(record);
  const id = from.text() ?? "";
  const list = from.number() ?? 0;
  const path = from.text() ?? "";
  const at = new Date(from.number() ?? 0).toISOString();
  const flags = from.byte();
  const [className, model, tenant] = [from.text(), from.text(), from.text()];
  const key = { source: KEY_SOURCES[from.byte()]!, slot: from.count() };
  const [home, word, second] = [from.text(), from.count(), from.text()];
  const [snapshot, error] = [from.number(), from.text()];
  const shed = readShed(from);
  const outcome = OUTCOMES[from.byte()] ?? null;
  const ttftMs = from.ms();
  const [promptTokens, completionTokens, cachedTokens] = [from.count(), from.count(), from.count()];
  const tokensFrom = TOKENS_FROM[from.byte()] ?? null;
  const weight = from.number();
  const addends = addendsOf(from);
  const attempts: DecisionAttempt[] = [];
  for (let left = from.byte(); left > 0; left--)
    attempts.push({
      engine: from.text() ?? "",
      reason: REASONS[from.byte()] ?? "",
      outcome: OUTCOMES[from.byte()]!,
      status: from.count(),
      connectMs: from.ms(),
      headMs: from.ms(),
      firstTokenMs: from.ms(),
      endMs: from.ms() ?? 0,
      bytes: from.number() ?? 0,
    });
  return {
    id,
    at,
    cluster,
    class: className,
    classBy: className === null ? null : (flags & FLAG.classNamed) !== 0 ? "header" : "model",
    model,
    path,
    stream: (flags & FLAG.stream) !== 0,
    tenant,
    key,
    home,
    homeState: word === null ? null : { state: routedStateOf(word), factor: factorOf(word) },
    second,
    first: (flags & FLAG.first) !== 0,
    ruledOut: ruledOut(list),
    snapshot,
    weight,
    addends,
    attempts,
    outcome,
    error,
    shed,
    ttftMs,
    promptTokens,
    completionTokens,
    cachedTokens,
    tokensFrom,
  };
}

function addendsOf(from: RecordReader): DecisionAddends | null {
  const [networkMs, serviceMs, congestionMs, capacityPriceMs, stabilityMs] = Array.from({ length: ADDENDS }, () =>
    from.ms(),
  );
  if (networkMs === null || networkMs === undefined) return null;
  return {
    networkMs,
    serviceMs: serviceMs ?? 0,
    congestionMs: congestionMs ?? 0,
    capacityPriceMs: capacityPriceMs ?? 0,
    stabilityMs: stabilityMs ?? 0,
  };
}
