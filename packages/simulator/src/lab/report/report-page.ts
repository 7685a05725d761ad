import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { LabReport } from "./report.ts";
import { REPORT_SCRIPT } from "./report-script.ts";
import { REPORT_STYLE } from "./report-style.ts";

/**
 * A report as one page: its figures, the chart library (uPlot, MIT) and everything else are in it, and it asks for nothing
 * from anywhere.
 */
export function reportPage(report: LabReport): string {
  const require = createRequire(import.meta.url);
  const library = readFileSync(require.resolve("uplot/dist/uPlot.iife.min.js"), "utf8");
  const libraryStyle = readFileSync(require.resolve("uplot/dist/uPlot.min.css"), "utf8");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Guidevane policy lab: ${escapeText(report.workload.name)}</title>
<style>${libraryStyle}
${REPORT_STYLE}</style>
</head>
<body>
<header><h1>Policy lab</h1><p id="verdict">${escapeText(report.verdict)}</p></header>
<main id="main"></main>
<script>${library}</script>
<script type="application/json" id="report">${JSON.stringify(report).replaceAll("<", "\\u003c")}</script>
<script>${REPORT_SCRIPT}</script>
</body>
</html>
`;
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
