/** A list longer than this is no help to whoever mistyped a name. */
const LISTED_MAX = 12;
/** So many of a long list are said. */
const NEAREST = 5;
/** Names are compared up to here: the comparison takes the square of it. */
const COMPARED = 64;

/**
 * The names that an unknown one could have been, for the end of a message: all of a few, of many those most like it.
 *
 * @param what the names are; default "known"
 */
export function knownNames(unknown: string, known: Iterable<string>, what = "known"): string {
  const names = [...known];
  if (names.length === 0) return "there is none";
  if (names.length <= LISTED_MAX) return `${what}: ${names.join(", ")}`;
  const wanted = unknown.slice(0, COMPARED).toLowerCase();
  const ranked = names.map((name) => ({ name, edits: editsBetween(wanted, name.slice(0, COMPARED).toLowerCase()) }));
  ranked.sort((a, b) => a.edits - b.edits);
  const nearest = ranked.slice(0, NEAREST).map(({ name }) => name);
  return `nearest of ${names.length}: ${nearest.join(", ")}`;
}

/** Letters to put in, take out or replace to make one text of the other: Levenshtein's distance, row by row. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 0; i < from.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j++)
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (from[i] === to[j] ? 0 : 1)));
    row = next;
  }
  return row[to.length]!;
}
