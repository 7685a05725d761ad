const WIDTH = 30;

/** A bar on the terminal for one policy's run; where stderr is no terminal, one line when it is done. */
export function showProgress(
  policy: string,
  index: number,
  count: number,
): { readonly at: (part: number) => void; readonly done: () => void } {
  const { stderr } = process;
  const title = `${String(index + 1).padStart(2)}/${count} ${policy.padEnd(22)}`;
  if (!stderr.isTTY) return { at: () => {}, done: () => void stderr.write(`${title}\n`) };
  const at = (part: number): void => {
    const full = Math.round(part * WIDTH);
    stderr.write(`\r${title} [${"#".repeat(full)}${" ".repeat(WIDTH - full)}]`);
  };
  at(0);
  return { at, done: () => void stderr.write(index + 1 === count ? "\r\x1b[K" : "\r") };
}
