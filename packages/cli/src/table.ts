/** Rows as aligned columns, the first one left, numbers right. Each row ends in a newline. */
export function showTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const isNumber = head.map(
    (_, column) => rows.length > 0 && rows.every((row) => /^[-+\d.,% –]*$/.test(row[column] ?? "")),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (isNumber[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join("  ")
      .trimEnd();
  return [head, ...rows].map((row) => `${line(row)}\n`).join("");
}
