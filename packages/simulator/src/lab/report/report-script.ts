/** The page's script: tables and charts from the figures in it. Plain browser JavaScript. */
export const REPORT_SCRIPT = `
"use strict";
const report = JSON.parse(document.getElementById("report").textContent);
const main = document.getElementById("main");
const colours = ["#2563eb","#dc2626","#16a34a","#9333ea","#ea580c","#0891b2","#be185d","#65a30d","#7c3aed","#b45309","#0f766e","#64748b","#e11d48","#4d7c0f","#1d4ed8"];
const colour = (i) => colours[i % colours.length];
const axis = () => getComputedStyle(document.body).color;

function add(tag, parent, text) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}
function section(title, note) {
  const made = add("section", main);
  add("h2", made, title);
  if (note) add("p", made, note);
  return made;
}
const ms = (value) => value === undefined || value === null ? "–" : value >= 10000 ? (value / 1000).toFixed(1) + " s" : value.toFixed(0);
const part = (value) => (100 * value).toFixed(1);

const columns = [
  ["TTFT mean, ms", (f) => f.ttft?.meanMs, ms, -1], ["p50", (f) => f.ttft?.p50Ms, ms, -1], ["p95", (f) => f.ttft?.p95Ms, ms, -1], ["p99", (f) => f.ttft?.p99Ms, ms, -1],
  ["E2E mean, ms", (f) => f.e2e?.meanMs, ms, -1], ["p50", (f) => f.e2e?.p50Ms, ms, -1], ["p95", (f) => f.e2e?.p95Ms, ms, -1], ["p99", (f) => f.e2e?.p99Ms, ms, -1],
  ["good/s", (f) => f.goodputRps, (v) => v.toFixed(1), 1], ["good, %", (f) => f.goodPart, part, 1], ["prefix hits, %", (f) => f.hitPart, part, 1],
  ["moved follow-ups, %", (f) => f.movedPart, part, -1], ["other region, %", (f) => f.crossRegionPart, part, 0], ["network, ms", (f) => f.networkMs, ms, 0],
  ["churn/min, %", (f) => f.churnPerMin, part, 0], ["reversals/min", (f) => f.reversalsPerMin, (v) => v.toFixed(1), 0],
  ["shed, %", (f) => f.shedPart, part, -1], ["failed, %", (f) => f.failedPart, part, -1], ["no answer, %", (f) => f.unansweredPart, part, -1],
  ["retries/request", (f) => f.retriesPerRequest, (v) => v.toFixed(3), 0], ["clients' retries", (f) => f.clientRetriesPerRequest, (v) => v.toFixed(3), 0],
];
const figures = section("Figures", "The best of each column is bold. Good: answered with a TTFT of at most " + report.slo.ttftMs + " ms and at most " + report.slo.tbotMs + " ms a token.");
const wide = add("div", figures); wide.className = "wide";
const table = add("table", wide);
const head = add("tr", add("thead", table));
add("th", head, "policy");
for (const [name] of columns) add("th", head, name);
const body = add("tbody", table);
for (const f of report.policies) {
  const row = add("tr", body);
  if (f.policy === "guidevane") row.className = "ours";
  const name = add("td", row, f.policy); name.title = f.does + " " + JSON.stringify(f.values);
  for (const [, of, show, sense] of columns) {
    const cell = add("td", row, of(f) === undefined ? "–" : show(of(f)));
    const values = report.policies.map(of).filter((v) => v !== undefined);
    if (sense !== 0 && of(f) === (sense > 0 ? Math.max(...values) : Math.min(...values))) cell.className = "best";
  }
}

function chart(parent, x, series, xName, yName, log, time) {
  const box = add("div", parent);
  const styled = series.map((s, i) => ({ label: s.label, stroke: s.colour || colour(i), width: s.label === "guidevane" ? 3 : 1.5, points: { show: false }, show: s.show !== false }));
  const line = { stroke: axis, grid: { stroke: "#8884" }, ticks: { stroke: "#8884" } };
  return new uPlot({
    width: Math.min(1080, document.body.clientWidth - 20), height: 300,
    scales: { x: { time: false }, y: log ? { distr: 3 } : {} },
    axes: [{ ...line, label: xName }, { ...line, label: yName, size: 70 }],
    series: [{ label: xName }, ...styled],
  }, [x, ...series.map((s) => s.values)], box);
}
const usable = report.policies.filter((f) => f.ttft !== null);
const positive = (values) => values.map((v) => v > 0 ? v : null);
const byPercentile = section("How long requests take", "Percentiles of all answered requests, logarithmic. Click a name to hide it.");
chart(byPercentile, report.percentiles, usable.map((f) => ({ label: f.policy, values: positive(f.e2eCurve) })), "percentile", "E2E, ms", true);
chart(byPercentile, report.percentiles, usable.map((f) => ({ label: f.policy, values: positive(f.ttftCurve) })), "percentile", "TTFT, ms", true);

const overTime = section("Over time", "Seconds since the caches had settled.");
const longest = usable.reduce((a, f) => f.timeline.atS.length > a.length ? f.timeline.atS : a, []);
const padded = (values) => longest.map((_, i) => values[i] ?? null);
chart(overTime, longest, usable.map((f) => ({ label: f.policy, values: padded(positive(f.timeline.meanTtftMs)) })), "s", "mean TTFT, ms", true);
chart(overTime, longest, usable.map((f) => ({ label: f.policy, values: padded(positive(f.timeline.p95E2eMs)) })), "s", "p95 of E2E, ms", true);
chart(overTime, longest, usable.filter((f) => f.timeline.moved.some((v) => v > 0)).map((f) => ({ label: f.policy, values: padded(f.timeline.moved.map((v) => 100 * v)) })), "s", "keys moved, %", false);

const engines = section("Utilisation of engines");
const choose = add("select", engines);
choose.setAttribute("aria-label", "policy");
for (const f of report.policies) add("option", choose, f.policy).value = f.policy;
const place = add("div", engines);
function showEngines() {
  place.replaceChildren();
  const f = report.policies.find((each) => each.policy === choose.value);
  chart(place, f.timeline.atS, Object.entries(f.timeline.utilisation).map(([label, values]) => ({ label, values })), "s", "utilisation", false);
}
choose.addEventListener("change", showEngines);
showEngines();

const how = section("What was run");
const facts = add("dl", how);
for (const [name, value] of [["workload", report.workload.name], ["requests", report.workload.requests], ["seed", report.seed], ["fleet", report.fleet],
  ["conditions", report.conditions.join("; ") || "none"], ["command", report.command]]) { add("dt", facts, name); add("dd", facts, String(value)); }
add("p", how, "Assumed:");
const assumed = add("ul", how);
for (const each of report.workload.assumptions) add("li", assumed, each);
add("p", how, "Policies:");
const policies = add("ul", how);
for (const f of report.policies) add("li", policies, f.policy + " " + f.does + (Object.keys(f.values).length ? " (" + Object.entries(f.values).map(([k, v]) => k + " " + v).join(", ") + ")" : ""));
`;
