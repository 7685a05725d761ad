import type { FittedProfile, LoadPoint } from "@guidevane/signals";
import { scaleLinear } from "d3-scale";
import { line } from "d3-shape";

/** More panels than this are no picture any more. */
const MOST_CURVES = 24;
const PANEL = { width: 360, height: 200, left: 52, right: 24, top: 30, bottom: 34 } as const;

/** A profile and what it was made from. */
export interface Plotted {
  readonly points: readonly LoadPoint[];
  readonly profile: Pick<FittedProfile, "profile" | "capacityWps" | "ttftMs" | "tbotMs" | "band">;
  /** Utilisations between which it was measured; null = nowhere. */
  readonly measured: { readonly from: number; readonly to: number } | null;
}

/** An SVG: for each curve its TTFT and its TBOT against utilisation, the band, and the points that they were fitted to. */
export function plotProfiles(fits: readonly Plotted[]): string {
  const shown = fits.slice(0, MOST_CURVES);
  const panels = shown.flatMap((fit, row) => [
    panel(fit, "ttftMs", `${fit.profile.profile} · TTFT, ms`, 0, row),
    panel(fit, "tbotMs", "TBOT, ms", 1, row),
  ]);
  const [width, height] = [2 * PANEL.width, shown.length * PANEL.height];
  const style = "text{font:11px sans-serif;fill:#333}.axis{stroke:#999}.fit{fill:none;stroke:#0b62a4;stroke-width:1.5}";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<style>${style}.band{fill:#0b62a4;opacity:.12}.point{fill:#d1495b}.beyond{fill:#000;opacity:.05}</style>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...panels,
    "</svg>\n",
  ].join("\n");
}

function panel(
  { points: measuredPoints, profile, measured }: Plotted,
  times: "ttftMs" | "tbotMs",
  title: string,
  column: number,
  row: number,
): string {
  const knots = profile[times];
  const band = profile.band?.[times];
  const points = measuredPoints.map((point) => [point.ratePerS / profile.capacityWps, point[times]] as const);
  const most = Math.max(...[...points, ...knots, ...(band?.high ?? [])].map(([, ms]) => ms)) * 1.05;
  const { width, height, left, right, top, bottom } = PANEL;
  const x = scaleLinear([0, 1], [left, width - right]);
  const y = scaleLinear([0, most], [height - bottom, top]).nice();
  const path = line<readonly [number, number]>(
    ([at]) => x(at),
    ([, ms]) => y(ms),
  );
  const around =
    band === undefined ? "" : `<path class="band" d="${path([...band.low, ...[...band.high].reverse()])}Z"/>`;
  const { from, to } = measured ?? { from: 1, to: 1 };
  const beyond = [
    [0, from],
    [to, 1],
  ].map(
    ([a, b]) =>
      `<rect class="beyond" x="${x(a!)}" y="${top}" width="${Math.max(0, x(b!) - x(a!))}" height="${height - top - bottom}"/>`,
  );
  return [
    `<g transform="translate(${column * width},${row * height})">`,
    `<text x="${left}" y="18">${escaped(title)}</text>`,
    ...beyond,
    ...x
      .ticks(5)
      .map(
        (at) => `<text x="${x(at)}" y="${height - bottom + 14}" text-anchor="middle">${Math.round(at * 100)} %</text>`,
      ),
    ...y.ticks(4).map((ms) => `<text x="${left - 5}" y="${y(ms) + 4}" text-anchor="end">${ms}</text>`),
    `<path class="axis" fill="none" d="M${left},${top}V${height - bottom}H${width - right}"/>`,
    around,
    `<path class="fit" d="${path(knots)}"/>`,
    ...points.map(([at, ms]) => `<circle class="point" cx="${x(at)}" cy="${y(ms)}" r="3"/>`),
    "</g>",
  ].join("");
}

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
