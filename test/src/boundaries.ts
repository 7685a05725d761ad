export interface PackageRow {
  readonly name: string;
  readonly layer: string;
  readonly mayImport: readonly string[];
}

const HEADING = "## Packages and who may import whom";

/** The rows of the architecture page's package table. */
export function parsePackageTable(page: string): PackageRow[] {
  const start = page.indexOf(HEADING);
  if (start < 0) throw new Error(`the architecture page has no heading "${HEADING}"`);
  const rest = page.slice(start + HEADING.length);
  const end = rest.indexOf("\n## ");
  const rows = (end < 0 ? rest : rest.slice(0, end)).split("\n").filter((line) => line.startsWith("|"));
  // The first two are the header and its rule.
  return rows.slice(2).map((row) => {
    const [name = "", layer = "", mayImport = ""] = row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { name, layer, mayImport: mayImport === "nothing" ? [] : mayImport.split(/,\s*/) };
  });
}

const FORMS = [
  /\b(?:import|export)\s[^"'`;()]*?\bfrom\s*(["'])(?<name>[^"'\n]+)\1/g,
  /\bimport\s*(["'])(?<name>[^"'\n]+)\1/g,
  /\b(?:import|require|require\.resolve|import\.meta\.resolve)\(\s*(["'])(?<name>[^"'\n]+)\1/g,
  /\bnew URL\(\s*(["'])(?<name>\.{1,2}\/[^"'\n]+)\1\s*,\s*import\.meta\.url/g,
];

/** What a TypeScript file imports, in the order in which it stands there: modules, and files named by a relative URL. */
export function importsOf(source: string): string[] {
  const code = withoutComments(source);
  return FORMS.flatMap((form) => [...code.matchAll(form)])
    .sort((a, b) => a.index - b.index)
    .map((match) => match.groups!.name!);
}

/** Blanks comments, leaving strings alone: a `//` inside a string is no comment. */
function withoutComments(source: string): string {
  return source.replace(/(["'])(?:\\.|(?!\1)[^\\\n])*\1|`(?:\\.|[^\\`])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (found) =>
    found.startsWith("//") || found.startsWith("/*") ? " " : found,
  );
}
