import { createHash } from "node:crypto";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";

/** One self-contained page: no request but to the control plane that serves it. */
export const DASHBOARD_HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Guidevane</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>Guidevane</h1><p id="summary" aria-live="polite">Loading…</p></header>
<form id="token" hidden><label>Admin token <input type="password" autocomplete="off" required></label> <button>Open</button></form>
<main>
<section><h2>Clusters</h2><div id="clusters"></div></section>
<section><h2>Engines</h2><div id="engines"></div></section>
</main>
<script>${SCRIPT}</script>
</body>
</html>
`;

/** Only the page's own style and script run, and it may speak only to where it came from. */
export const DASHBOARD_CSP = [
  "default-src 'none'",
  `style-src ${hashSource(STYLE)}`,
  `script-src ${hashSource(SCRIPT)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

function hashSource(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
