import { FACT, USE } from "./facts.ts";
import { HEAD, type HeadFacts, NO_CLASS, OUT, PATH, ROUTE_STATUS, type RouteStatus } from "./router.ts";
import {
  CLASS,
  CLASS_WORDS,
  type Columns,
  HEADER,
  MODEL,
  MODEL_WORDS,
  NAME,
  NAME_WORDS,
  NO_CELL,
} from "./table-columns.ts";

/**
 * The model and the class of a request, to `out`: the model of the name or alias that the body has, or the only one there
 * is. The class is the one that a trusted header names if it is of the body's model, else the model's
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
  let model = 0;
  if (start === end) {
    // What is no name can't mean the only model: the engine would refuse it.
    if (models !== 1 || facts[FACT.modelIsOdd] === 1) return ROUTE_STATUS.modelRequired;
  } else {
    const count = words[HEADER.names]!;
    let row = words[HEADER.nameAt]!;
    let name = 0;
    while (name < count && !nameEquals(words, names, row, source, start, end)) {
      name++;
      row += NAME_WORDS;
    }
    if (name === count) return ROUTE_STATUS.modelNotFound;
    model = words[row + NAME.model]!;
    if (name >= models) out[OUT.aliased] = 1;
  }
  out[OUT.model] = model;
  const modelRow = words[HEADER.modelAt]! + model * MODEL_WORDS;

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
    const uses = facts[FACT.uses]! | usesOfPath(head.words[HEAD.path]!);
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

function usesOfPath(path: number): number {
  if (path === PATH.embeddings) return USE.embeddings;
  return path === PATH.rerank || path === PATH.score ? USE.rerank : 0;
}

function nameEquals(
  words: Uint32Array,
  names: Uint8Array,
  nameRow: number,
  source: Uint8Array,
  start: number,
  end: number,
): boolean {
  const nameStart = words[nameRow + NAME.start]!;
  const length = words[nameRow + NAME.end]! - nameStart;
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
