/** A place in a JSON document that is looked at, and those below it. */
export interface PathNode {
  /** What the place is called when its value is told; 0 = it is only on the way. */
  readonly id: number;
  /** Members of an object by the length of their name. */
  readonly members: (readonly { readonly name: Uint8Array; readonly node: PathNode }[] | undefined)[];
  /** Members without a place of their own. */
  readonly other: PathNode | null;
  /** Elements of a list. */
  readonly items: PathNode | null;
}

/**
 * Compiles the places to look at. A path is names joined by dots from the root; `[]` stands for each element of a list and
 * `*` for each member that no other path names: `choices[].delta.*`.
 *
 * @param paths each with its id; several may share one
 */
export function compilePaths(paths: readonly (readonly [path: string, id: number])[]): PathNode {
  const root: Draft = createDraft();
  for (const [path, id] of paths) {
    let node = root;
    for (const step of path.replaceAll("[]", ".[]").split(".")) {
      let next = node.steps.get(step);
      if (next === undefined) {
        next = createDraft();
        node.steps.set(step, next);
      }
      node = next;
    }
    node.id = id;
  }
  return finish(root);
}

interface Draft {
  id: number;
  readonly steps: Map<string, Draft>;
}

function createDraft(): Draft {
  return { id: 0, steps: new Map() };
}

function finish({ id, steps }: Draft): PathNode {
  const members: { name: Uint8Array; node: PathNode }[][] = [];
  let other: PathNode | null = null;
  let items: PathNode | null = null;
  for (const [step, draft] of steps) {
    const node = finish(draft);
    if (step === "*") other = node;
    else if (step === "[]") items = node;
    else {
      const name = Buffer.from(step);
      members[name.length] = [...(members[name.length] ?? []), { name, node }];
    }
  }
  return { id, members, other, items };
}
