import { createContext, Script } from "node:vm";
import { describe, expect, it } from "vitest";
import { SCRIPT } from "./script.ts";

/** As much of a browser's element as the page uses. */
class Element {
  readonly children: (Element | string)[] = [];
  className = "";
  hidden = true;

  set textContent(text: string) {
    this.replaceChildren(text);
  }

  get textContent(): string {
    return this.children.map((child) => (typeof child === "string" ? child : child.textContent)).join(" ");
  }

  append(...children: (Element | string)[]): void {
    this.children.push(...children);
  }

  replaceChildren(...children: (Element | string)[]): void {
    this.children.splice(0, this.children.length, ...children);
  }

  #appended(): Element {
    const made = new Element();
    this.append(made);
    return made;
  }

  createTHead(): Element {
    return this.#appended();
  }

  createTBody(): Element {
    return this.#appended();
  }

  insertRow(): Element {
    return this.#appended();
  }

  addEventListener(): void {}
}

type Answers = Readonly<Record<string, unknown>>;

/** The page before a control plane that answers so; `refresh` as if its timer had run. */
function open(first: Answers) {
  let answers = first;
  let timer: (() => unknown) | null = null;
  const byId = new Map(["token", "summary", "clusters", "engines"].map((id) => [id, new Element()]));
  const page = {
    document: { getElementById: (id: string) => byId.get(id), createElement: () => new Element() },
    Node: Element,
    sessionStorage: { getItem: () => null },
    fetch: async (path: string) => {
      const body = answers[path.split("?")[0]!];
      if (body === undefined) throw new Error("no control plane answers");
      const ok = !("error" in (body as object));
      // Through text, as over the wire: what is no number there is null.
      return { ok, status: ok ? 200 : 503, json: async () => JSON.parse(JSON.stringify(body)) };
    },
    setTimeout: (task: () => unknown) => {
      timer = task;
    },
    clearTimeout: () => {},
  };
  new Script(SCRIPT).runInContext(createContext(page));
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    settle,
    async refresh(next: Answers = answers): Promise<void> {
      answers = next;
      await timer!();
    },
    text: (id: string) => byId.get(id)!.textContent,
  };
}

const missing = { value: null, state: "missing", ageMs: null };
const engine = {
  ...{ id: "e", health: "unknown", healthReason: "not asked yet", share: {}, penalty: { factor: 1 } },
  signals: { running: missing, waiting: missing, kvUsage: missing, readyReplicas: missing },
};
const unpublished = {
  "/v1/engines": [engine],
  "/v1/clusters": [{ name: "a" }],
  "/v1/snapshot": { error: { message: "nothing has been published yet", code: "no_snapshot" } },
};
const planned = { loadWps: 0, capacityWps: 0, priceMs: 0 };
const cell = { cluster: "a", class: "chat", demandRps: 0.001, shed: 0, priceMs: null, weights: [], expectedMs: [] };
const snapshotOf = (madeAt: string, engines: object) => ({
  ...{ version: 3, madeAt, gateways: 0, engines, cells: [cell] },
  certificate: { expectedLatencyMs: null, churnFree: { gap: 0 } },
});
const published = (madeAt: string, engines: object = { e: planned }) => ({
  ...unpublished,
  "/v1/snapshot": snapshotOf(madeAt, engines),
});
const FAR = 600_000;

/** What nobody should read in a table. */
const RUBBISH = /NaN|undefined|null|Infinity|Invalid|\[object/;

describe("the page", () => {
  it("B174: shows dashes where there is nothing yet, before the first publication and before the first request", async () => {
    const page = open(unpublished);
    await page.settle();
    await page.refresh();
    expect(page.text("summary")).toBe("Nothing has been published yet.");
    expect(page.text("engines")).toMatch(/e .*not asked yet.*no capacity.*–.*missing/);
    await page.refresh(published(new Date().toISOString()));
    expect(page.text("summary")).toContain("mean latency – ms");
    expect(page.text("clusters")).toMatch(/a chat 0\.0 0 0 – 0/);
    for (const id of ["summary", "clusters", "engines"]) expect(page.text(id)).not.toMatch(RUBBISH);
  });

  it("B174: shows an engine that is no more in the plan, and no age below nothing, whichever clock is off", async () => {
    const page = open(published(new Date(Date.now() + FAR).toISOString(), {}));
    await page.settle();
    await page.refresh();
    expect(page.text("summary")).toMatch(/^version 3, 0 s old/);
    expect(page.text("engines")).toContain("no capacity");
    await page.refresh(published(new Date(Date.now() - FAR).toISOString()));
    expect(page.text("summary")).toMatch(/^version 3, 60\d s old/);
    for (const id of ["summary", "clusters", "engines"]) expect(page.text(id)).not.toMatch(RUBBISH);
  });

  it("B174: says that the control plane is gone, and goes on when it is back", async () => {
    const page = open(published(new Date().toISOString()));
    await page.settle();
    await page.refresh({});
    expect(page.text("summary")).toBe("no control plane answers");
    await page.refresh(published(new Date().toISOString()));
    expect(page.text("summary")).toMatch(/^version 3/);
  });
});
