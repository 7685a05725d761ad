import { FACT, USE } from "./facts.ts";
import { HEAD, type HeadFacts, NO_CLASS, OUT, PATH, ROUTE_STATUS, type RouteStatus } from "./router.ts";
import { CLASS, CLASS_WORDS, type Columns, HEADER, MODEL, MODEL_WORDS, NO_CELL } from "./table-columns.ts";

/**
 * The class of a request, to `out`: the one that a trusted header names if it is of the body's model, else the model's
 * first in file order all of whose capabilities the request uses and whose residency agrees. A request that names no
 * residency agrees with every class.
 */
export function classify(
  { words, names }: Columns,
  head: HeadFacts,
  source: Uint8Array,
  facts: Uint32Array,
  out: Uint32Array,
): RouteStatus {
  const start = facts[FACT.modelStart]!;
  const end = facts[FACT.modelEnd]!;
  const models = words[HEADER.models]!;
  let modelRow = words[HEADER.modelAt]!;
  let model = 0;
  if (start === end) {
    if (models !== 1) return ROUTE_STATUS.modelRequired;
  } else {
    while (model < models && !nameEquals(words, names, modelRow, source, start, end)) {
      model++;
      modelRow += MODEL_WORDS;
    }
    if (model === models) return ROUTE_STATUS.modelNotFound;
  }

  const classAt = words[HEADER.classAt]!;
  const residency = head.words[HEAD.residency]!;
  const named = head.words[HEAD.classNamed]!;
  let found: number = NO_CLASS;
  if (
    named > 0 &&
    named <= words[HEADER.classes]! &&
    words[classAt + (named - 1) * CLASS_WORDS + CLASS.model] === model
  ) {
    found = named - 1;
  } else {
    const uses = facts[FACT.uses]! | (head.words[HEAD.path] === PATH.embeddings ? USE.embeddings : 0);
    const listAt = words[modelRow + MODEL.classListAt]!;
    const listEnd = listAt + words[modelRow + MODEL.classListCount]!;
    for (let at = listAt; at < listEnd; at++) {
      const row = classAt + words[at]! * CLASS_WORDS;
      if ((words[row + CLASS.uses]! & ~uses) === 0 && agrees(words, row, residency)) {
        found = words[at]!;
        break;
      }
    }
  }
  out[OUT.requestClass] = found;
  if (found === NO_CLASS || words[classAt + found * CLASS_WORDS + CLASS.cell] === NO_CELL)
    return ROUTE_STATUS.noEligibleEngine;
  return ROUTE_STATUS.ok;
}

function nameEquals(
  words: Uint32Array,
  names: Uint8Array,
  modelRow: number,
  source: Uint8Array,
  start: number,
  end: number,
): boolean {
  const nameStart = words[modelRow + MODEL.nameStart]!;
  const length = words[modelRow + MODEL.nameEnd]! - nameStart;
  if (length !== end - start) return false;
  for (let i = 0; i < length; i++) if (names[nameStart + i] !== source[start + i]) return false;
  return true;
}

function agrees(words: Uint32Array, classRow: number, residency: number): boolean {
  const count = words[classRow + CLASS.residencyCount]!;
  if (residency === 0 || count === 0) return true;
  const at = words[classRow + CLASS.residencyAt]!;
  for (let i = 0; i < count; i++) if (words[at + i] === residency) return true;
  return false;
}
