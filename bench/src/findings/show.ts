import type { PolicyDefinition, PolicyValues } from "@guidevane/simulator";

export function named(policies: readonly PolicyDefinition[], name: string): PolicyDefinition {
  const found = policies.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no policy ${name}`);
  return found;
}

/** As Markdown, so that it goes into docs/findings.md as it is. */
export function printTable(title: string, head: readonly string[], rows: readonly (readonly string[])[]): void {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
  process.stdout.write(`\n${title}\n\n${line(head)}${line(head.map(() => "---"))}${rows.map(line).join("")}`);
}

export function combinations(grid: Readonly<Record<string, readonly number[]>>): PolicyValues[] {
  return Object.entries(grid).reduce<PolicyValues[]>(
    (all, [name, values]) => all.flatMap((each) => values.map((value) => ({ ...each, [name]: value }))),
    [{}],
  );
}
