/**
 * Script of the page: reads the admin API every few seconds and writes tables. All text goes in by `textContent`, since
 * names come from a file that somebody else may write.
 */
export const SCRIPT = `
"use strict";
const REFRESH_MS = 3000;
const byId = (id) => document.getElementById(id);
let token = sessionStorage.getItem("guidevane-token");
let timer;

async function get(path) {
  const headers = token === null ? {} : { authorization: "Bearer " + token };
  const reply = await fetch(path, { headers });
  if (reply.status === 401) { byId("token").hidden = false; throw new Error("a token is needed"); }
  const body = await reply.json();
  if (!reply.ok) throw new Error(body.error ? body.error.message : "HTTP " + reply.status);
  return body;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function table(columns, rows) {
  const made = element("table");
  const head = made.createTHead().insertRow();
  for (const { title, number } of columns) head.append(element("th", title, number ? "n" : ""));
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    if (row.className) line.className = row.className;
    columns.forEach(({ number, cell }) => {
      const at = element("td", undefined, number ? "n" : "");
      const content = cell(row);
      at.append(content instanceof Node ? content : String(content));
      line.append(at);
    });
  }
  return made;
}

const round = (value, digits) => value === null || value === undefined ? "–" : value.toFixed(digits);
const percent = (value, digits = 1) => value === undefined ? "–" : (100 * value).toFixed(digits) + " %";
const signal = (found, digits = 0) => {
  if (found.value === null) return element("small", found.state, found.state === "missing" ? "alarm" : "");
  return found.state === "stale" ? element("small", round(found.value, digits) + " (stale)") : round(found.value, digits);
};

function loadBar(load) {
  const cell = element("span");
  if (load === undefined || !(load.capacityWps > 0)) return element("small", "no capacity");
  const ratio = load.loadWps / load.capacityWps;
  const bar = element("meter");
  Object.assign(bar, { min: 0, max: 1, high: 0.94, value: Math.min(1, ratio) });
  cell.append(bar, percent(ratio, 0));
  return cell;
}

function showClusters(snapshots) {
  const cells = snapshots.flatMap((snapshot) => snapshot.cells.map((cell) => ({ ...cell, snapshot })));
  byId("clusters").replaceChildren(table([
    { title: "cluster", cell: (row) => row.cluster },
    { title: "class", cell: (row) => row.class },
    { title: "demand /s", number: true, cell: (row) => round(row.demandRps, 1) },
    { title: "shed", number: true, cell: (row) => row.shed > 0 ? element("span", percent(row.shed), "alarm") : "0" },
    { title: "expected ms", number: true, cell: (row) => round(row.weights.reduce((sum, weight, i) => sum + weight * row.expectedMs[i], 0), 0) },
    { title: "price ms", number: true, cell: (row) => round(row.priceMs, 0) },
    { title: "gateways", number: true, cell: (row) => row.snapshot.gateways },
  ], cells));
}

function showEngines(engines, snapshots) {
  const planned = Object.assign({}, ...snapshots.map((snapshot) => snapshot.engines));
  const shareColumns = snapshots.flatMap((snapshot) => snapshot.cells.map((cell) => ({
    title: cell.cluster + " · " + cell.class,
    number: true,
    cell: (row) => { const share = row.share[cell.cluster] && row.share[cell.cluster][cell.class]; return share ? percent(share) : element("small", "–"); },
  })));
  byId("engines").replaceChildren(table([
    { title: "engine", cell: (row) => { const cell = element("span"); cell.append(element("span", undefined, "dot"), row.id); return cell; } },
    { title: "health", cell: (row) => { const cell = element("span", row.health + " "); cell.append(element("small", row.healthReason)); return cell; } },
    { title: "planned load", cell: (row) => loadBar(planned[row.id]) },
    { title: "price ms", number: true, cell: (row) => round(planned[row.id] && planned[row.id].priceMs, 0) },
    { title: "factor", number: true, cell: (row) => percent(row.penalty.factor, 0) },
    { title: "running", number: true, cell: (row) => signal(row.signals.running) },
    { title: "waiting", number: true, cell: (row) => signal(row.signals.waiting) },
    { title: "KV", number: true, cell: (row) => signal(row.signals.kvUsage, 2) },
    ...shareColumns,
  ], engines.map((engine) => ({ ...engine, className: engine.health }))));
}

function showSummary(snapshots) {
  const first = snapshots[0];
  if (first === undefined) { byId("summary").textContent = "Nothing has been published yet."; return; }
  const { certificate, version, madeAt } = first;
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(madeAt)) / 1000));
  byId("summary").textContent = "version " + version + ", " + seconds + " s old · mean latency " + round(certificate.expectedLatencyMs, 0)
    + " ms · within " + percent(certificate.churnFree.gap, 2) + " of the optimum";
}

async function refresh() {
  clearTimeout(timer);
  try {
    const engines = await get("/v1/engines");
    const clusters = await get("/v1/clusters");
    const replies = await Promise.allSettled(clusters.map(({ name }) => get("/v1/snapshot?cluster=" + encodeURIComponent(name))));
    const snapshots = replies.filter((reply) => reply.status === "fulfilled").map((reply) => reply.value);
    byId("token").hidden = true;
    showSummary(snapshots);
    showClusters(snapshots);
    showEngines(engines, snapshots);
  } catch (error) {
    byId("summary").textContent = error.message;
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, REFRESH_MS);
}

byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = event.target.querySelector("input").value;
  sessionStorage.setItem("guidevane-token", token);
  byId("token").hidden = true;
  refresh();
});
refresh();
`;
