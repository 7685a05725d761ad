import type { ClusterSnapshot } from "@guidevane/core";
import type { RequestNeeds, RuledOut } from "@guidevane/selector";

/** Engines that a list names: of a fleet that has more the rest is left out. */
export const LISTED_MAX = 80;

/** Which engines could not take a request; shared by all requests that it holds for. */
export interface RuledOutList {
  readonly engines: readonly RuledOut[];
  /** Where the log of decisions keeps it; 0 = nowhere yet. */
  entry: number;
}

/** What one snapshot says: a `Routing`. */
export interface RuledOutSource {
  readonly snapshot: Pick<ClusterSnapshot, "engines">;
  /** Rises when the state of an engine changes. */
  readonly stateVersion: number;
  /** The first ones, `most` of them at the most. */
  ruledOut(className: string, needs: RequestNeeds, most: number): RuledOut[];
}

/** What a request asks of engines, as the selector read it. */
export interface RuledOutAsk {
  readonly requestClass: number;
  readonly className: string;
  /** Bits of `NEED`. */
  readonly needs: number;
  readonly contextTokens: number;
  readonly residency: string | null;
}

/**
 * Lists of ruled-out engines. To make one takes a look at many engines of the snapshot, which costs more than to choose one,
 * so requests that ask the same share it until an engine's state changes.
 */
export class RuledOutLists {
  readonly #ofSource = new WeakMap<RuledOutSource, ListsOfSource>();

  of(source: RuledOutSource, ask: RuledOutAsk): RuledOutList {
    let lists = this.#ofSource.get(source);
    if (lists === undefined) {
      lists = new ListsOfSource(source);
      this.#ofSource.set(source, lists);
    }
    return lists.of(ask);
  }
}

/** Lists for what few requests ask that one snapshot may have; then they are begun anew. */
const SPECIAL_MAX = 256;

interface Kept {
  readonly list: RuledOutList;
  /** Of the engines' states. */
  version: number;
}

class ListsOfSource {
  readonly #source: RuledOutSource;
  /** The least context that any engine holds: a request below it is ruled out nowhere for its length. */
  readonly #leastContext: number;
  /** By class, for requests that ask nothing of their own. */
  readonly #plain: (Kept | undefined)[] = [];
  readonly #special = new Map<string, Kept>();

  constructor(source: RuledOutSource) {
    this.#source = source;
    const contexts = Object.values(source.snapshot.engines).map(
      (each) => each.maxContextTokens ?? Number.POSITIVE_INFINITY,
    );
    this.#leastContext = Math.min(...contexts, Number.POSITIVE_INFINITY);
  }

  of(ask: RuledOutAsk): RuledOutList {
    const contextTokens = ask.contextTokens * 2 > this.#leastContext * 3 ? ask.contextTokens : 0;
    if (ask.needs === 0 && contextTokens === 0 && ask.residency === null) {
      const kept = this.#fresh(this.#plain[ask.requestClass], ask);
      this.#plain[ask.requestClass] = kept;
      return kept.list;
    }
    const key = `${ask.className} ${ask.needs} ${contextTokens} ${ask.residency ?? ""}`;
    const kept = this.#fresh(this.#special.get(key), ask);
    if (this.#special.size >= SPECIAL_MAX) this.#special.clear();
    this.#special.set(key, kept);
    return kept.list;
  }

  #fresh(kept: Kept | undefined, ask: RuledOutAsk): Kept {
    const version = this.#source.stateVersion;
    if (kept !== undefined && kept.version === version) return kept;
    const { needs, contextTokens, residency } = ask;
    const asked = { needs, contextTokens, residency, tried: NONE_TRIED };
    const engines = this.#source.ruledOut(ask.className, asked, LISTED_MAX);
    // The same list again stays the same one, so that it need not be written down again.
    if (kept !== undefined && isSame(kept.list.engines, engines)) {
      kept.version = version;
      return kept;
    }
    return { list: { engines, entry: 0 }, version };
  }
}

const NONE_TRIED: ReadonlySet<string> = new Set();

function isSameEntry(a: RuledOut, b: RuledOut): boolean {
  return a.engine === b.engine && a.by === b.by && a.message === b.message;
}

function isSame(a: readonly RuledOut[], b: readonly RuledOut[]): boolean {
  return a.length === b.length && a.every((each, at) => each === b[at]! || isSameEntry(each, b[at]!));
}
