import { readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, type PackageRow, parsePackageTable } from "./boundaries.ts";
import { isTestFile, publishedPackages, root, sourceFiles, type Workspace } from "./repository.ts";

const layers = ["leaf", "part", "plane", "program"];

/** Who may import whom. The architecture page has the same table, and the first test holds the two together. */
const allowed: Readonly<Record<string, Omit<PackageRow, "name">>> = {
  core: { layer: "leaf", mayImport: [] },
  native: { layer: "leaf", mayImport: ["core"] },
  selector: { layer: "part", mayImport: ["core", "native"] },
  guard: { layer: "part", mayImport: ["core"] },
  signals: { layer: "part", mayImport: ["core"] },
  optimizer: { layer: "part", mayImport: ["core", "native", "selector"] },
  store: { layer: "part", mayImport: ["core"] },
  dashboard: { layer: "part", mayImport: [] },
  gateway: { layer: "plane", mayImport: ["core", "selector", "guard"] },
  control: { layer: "plane", mayImport: ["core", "signals", "optimizer", "store", "dashboard"] },
  simulator: { layer: "plane", mayImport: ["core", "selector", "guard", "signals", "optimizer"] },
  cli: {
    layer: "program",
    mayImport: ["core", "signals", "optimizer", "store", "gateway", "control", "simulator"],
  },
};

const packages = publishedPackages();

describe("the package table", () => {
  it("is the one in the architecture page", () => {
    const rows = parsePackageTable(readFileSync(join(root, "docs/architecture.md"), "utf8"));
    const table = rows.map(({ name, layer, mayImport }) => [name, { layer, mayImport }] as const);
    expect(Object.fromEntries(table)).toEqual(allowed);
  });

  it("names every package and no other", () => {
    expect(packages.map(({ name }) => name).sort()).toEqual(Object.keys(allowed).sort());
  });

  it("lets imports go down only, planes never into each other", () => {
    for (const [name, { layer, mayImport }] of Object.entries(allowed)) {
      for (const other of mayImport) {
        const below = layers.indexOf(allowed[other]!.layer);
        const own = layers.indexOf(layer);
        expect(below, `${name} (${layer}) imports ${other}`).toBeLessThanOrEqual(own);
        if (layer === "plane") expect(allowed[other]!.layer, `${name} imports ${other}`).not.toBe("plane");
      }
    }
    expect(cycleIn(new Map(Object.entries(allowed).map(([name, row]) => [name, row.mayImport])))).toBeNull();
  });
});

describe.each(packages)("package $name", ({ name, folder, manifest }: Workspace) => {
  const mayImport = allowed[name]?.mayImport ?? [];
  const files = sourceFiles(`${folder}/src`);
  const production = files.filter((file) => !isTestFile(file));

  it("depends on no package that the table does not allow", () => {
    const inside = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
      .filter((each) => each.startsWith("@guidevane/"))
      .map((each) => each.slice("@guidevane/".length));
    expect(inside.filter((each) => !mayImport.includes(each))).toEqual([]);
  });

  it("imports only what it declares and the table allows, through the door", () => {
    const wrong = files.flatMap((file) => {
      // A test may use what is declared for development; the rest of the program only has `dependencies`.
      const isTest = isTestFile(file);
      const declared = new Set([
        ...Object.keys(manifest.dependencies ?? {}),
        ...Object.keys(manifest.optionalDependencies ?? {}),
        ...(isTest ? ["vitest", ...Object.keys(manifest.devDependencies ?? {})] : []),
      ]);
      return importsOf(readFileSync(join(root, file), "utf8"))
        .map((specifier) => reasonAgainst(specifier, file, folder, declared, mayImport))
        .filter((reason) => reason !== null)
        .map((reason) => `${file}: ${reason}`);
    });
    expect(wrong).toEqual([]);
  });

  it("has no import cycle", () => {
    const graph = new Map(production.map((file) => [file, ownImports(file)] as const));
    expect(cycleIn(graph)).toBeNull();
  });

  it("says its licence, its Node and its files, and runs nothing when it is installed", () => {
    expect(manifest.license).toBe("Apache-2.0");
    expect(manifest.engines).toEqual({ node: ">=22.19" });
    expect(manifest.files).toContain("dist");
    const hooks = ["preinstall", "install", "postinstall", "prepare", "prepublish"];
    expect(hooks.filter((hook) => manifest.scripts?.[hook] !== undefined)).toEqual([]);
  });
});

describe("the lockfile", () => {
  it("has no package with an install script", () => {
    const { packages: entries } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    expect(Object.keys(entries).filter((path) => entries[path]!.hasInstallScript === true)).toEqual([]);
  });
});

describe("core", () => {
  it("does no I/O: it imports nothing of Node", () => {
    const production = sourceFiles("packages/core/src").filter((file) => !isTestFile(file));
    const builtins = production.flatMap((file) =>
      importsOf(readFileSync(join(root, file), "utf8"))
        .filter((specifier) => specifier.startsWith("node:"))
        .map((specifier) => `${file}: ${specifier}`),
    );
    expect(builtins).toEqual([]);
  });
});

describe("the reader of imports", () => {
  it("finds every form of import, and none in comments or text", () => {
    const source = [
      'import a from "one";',
      'import type { B } from "two";',
      'import { type C,\n  d } from "three";',
      'import "four";',
      'export * from "five";',
      'export { e } from "six";',
      'const f = await import("seven");',
      'const g = new URL("./eight.ts", import.meta.url);',
      'const h = require("nine");',
      '// import x from "no-comment";',
      '/* export * from "no-block"; */',
      'const text = "not an import from here";',
      'type I = import("ten").I;',
    ].join("\n");
    expect(importsOf(source)).toEqual([
      "one",
      "two",
      "three",
      "four",
      "five",
      "six",
      "seven",
      "./eight.ts",
      "nine",
      "ten",
    ]);
  });

  it("finds a cycle and names its way round", () => {
    const graph = new Map([
      ["a", ["b"]],
      ["b", ["c"]],
      ["c", ["b"]],
    ]);
    expect(cycleIn(graph)).toEqual(["b", "c", "b"]);
  });
});

function reasonAgainst(
  specifier: string,
  file: string,
  folder: string,
  declared: ReadonlySet<string>,
  mayImport: readonly string[],
): string | null {
  if (specifier.startsWith("node:")) return null;
  if (specifier.startsWith(".")) {
    const target = normalize(join(dirname(file), specifier));
    if (relative(folder, target).startsWith(".."))
      return isTestFile(file) && !isCode(target) ? null : `${specifier} reaches outside the package`;
    return /\.(ts|json|node|wasm)$/.test(target) || !target.includes("/src/") ? null : `${specifier} has no extension`;
  }
  const [scope = "", second] = specifier.split("/");
  const name = scope.startsWith("@") ? `${scope}/${second}` : scope;
  if (!declared.has(name)) return `${specifier} is not declared in package.json`;
  if (!name.startsWith("@guidevane/")) return null;
  if (specifier !== name) return `${specifier} goes past the door`;
  return mayImport.includes(name.slice("@guidevane/".length)) ? null : `${specifier} is not allowed by the table`;
}

/** A test may read what lies elsewhere, such as captures or the twin's source in Rust; it runs only its own package's code. */
function isCode(path: string): boolean {
  return /\.[cm]?[jt]s$/.test(path);
}

function ownImports(file: string): string[] {
  return importsOf(withoutTypes(readFileSync(join(root, file), "utf8")))
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => normalize(join(dirname(file), specifier)));
}

/** A type goes when the file is compiled, so two files may take types from each other. */
function withoutTypes(source: string): string {
  return source.replace(/^(import|export) type [^;]*;$/gm, "");
}

/** The first cycle of a graph as a way round it, or null. */
function cycleIn(graph: ReadonlyMap<string, readonly string[]>): string[] | null {
  const done = new Set<string>();
  const visit = (node: string, way: readonly string[]): string[] | null => {
    const at = way.indexOf(node);
    if (at >= 0) return [...way.slice(at), node];
    if (done.has(node)) return null;
    for (const next of graph.get(node) ?? []) {
      const found = visit(next, [...way, node]);
      if (found !== null) return found;
    }
    done.add(node);
    return null;
  };
  for (const node of graph.keys()) {
    const found = visit(node, []);
    if (found !== null) return found;
  }
  return null;
}
