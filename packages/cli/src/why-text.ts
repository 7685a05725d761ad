import type { Decision, RoutedState } from "@guidevane/gateway";
import { showTable } from "./table.ts";

/** A decision for a person who asks why a request went where it went. */
export function showDecision(decision: Decision): string {
  const lines = [
    headline(decision),
    "",
    ...row("class", classWords(decision)),
    ...row("key", keyWords(decision)),
    ...row("home", homeWords(decision)),
    ...row("went to", choiceWords(decision)),
    ...row("ruled out", ruledOutWords(decision)),
    ...row("weight", weightWords(decision)),
    ...row("addends", addendWords(decision)),
    ...row("shed", shedWords(decision)),
    ...row("ended", endWords(decision)),
  ];
  const attempts = decision.attempts.length === 0 ? "" : `\n${attemptTable(decision)}`;
  return `${lines.join("\n")}\n${attempts}`;
}

const LABEL_WIDTH = 11;

/** No row where there is nothing to say. */
function row(label: string, words: string | null): string[] {
  return words === null ? [] : [`${label.padEnd(LABEL_WIDTH)}${words}`];
}

function headline({ id, at, cluster, path, stream, first, snapshot, tenant }: Decision): string {
  const facts = [
    stream ? "a stream" : null,
    first ? "a conversation's first request" : null,
    tenant === null ? null : `tenant ${tenant}`,
    snapshot === null
      ? null
      : snapshot === 0
        ? "routed before anything was published"
        : `routed by snapshot ${snapshot}`,
  ].filter((each) => each !== null);
  return `${id}: POST ${path} in cluster ${cluster} at ${at}${facts.length === 0 ? "" : `; ${facts.join(", ")}`}`;
}

function classWords({ class: name, classBy, model }: Decision): string | null {
  if (name === null) return null;
  const by =
    classBy === "header"
      ? "a trusted x-guidevane-class header named it"
      : "the model's first class whose capabilities the request uses and whose residency agrees";
  return `${name} (model ${model}): ${by}`;
}

const KEYS: Readonly<Record<Decision["key"]["source"], string>> = {
  header: "a session header",
  prompt_cache_key: "prompt_cache_key",
  previous_response_id: "previous_response_id, whose answer is known here",
  conversation: "conversation",
  session_id: "metadata.session_id",
  user: "user",
  prompt: "the beginning of the prompt",
  none: "none, so it was drawn anew",
};

function keyWords({ key, class: name }: Decision): string | null {
  if (name === null) return null;
  return `${KEYS[key.source]}${key.slot === null ? "" : `; slot ${key.slot} of the ring`}`;
}

const STATES: Readonly<Record<RoutedState, string>> = {
  ready: "was ready",
  out: "was out (dead, not ready, or taken out)",
  draining: "was draining",
  cooling: "had asked to be left alone",
  "probes-fail": "failed its probes",
};

function homeWords({ home, homeState, second }: Decision): string | null {
  if (home === null || homeState === null) return null;
  const part = homeState.factor < 1 ? `, and took ${percent(homeState.factor)} of its keys` : "";
  return `${home}, which ${STATES[homeState.state]}${part}${second === null ? "" : `; next in its key's order: ${second}`}`;
}

const REASONS: Readonly<Record<string, string>> = {
  home: "it is home",
  second: "home may not serve this body, or held more streams than the next",
  followed: "the request goes on what that engine holds",
  bounded: "home held more than its part of the running answers",
  penalised: "home takes only a part of its keys just now",
  ejected: "home takes nothing just now",
  cooled: "home had asked to be left alone",
  probe: "a request was due to show how the engine is",
  reserve: "no engine of the ring takes anything; this one has spare capacity",
  retry: "another engine had failed before the first byte",
  "fail-open": "every engine is out by its probes alone, so traffic flows all the same",
  bootstrap: "nothing was published yet: by capacity and distance",
};

function choiceWords({ attempts }: Decision): string | null {
  const [first] = attempts;
  if (first === undefined) return null;
  const last = attempts.at(-1)!;
  const words = ({ engine, reason }: typeof first) => `${engine}, since ${REASONS[reason] ?? reason}`;
  return attempts.length === 1 || first.engine === last.engine
    ? words(last)
    : `${words(first)}; then to ${words(last)}`;
}

/** A person reads so many; `--json` has them all. */
const RULED_OUT_SHOWN = 8;

function ruledOutWords({ ruledOut, class: name }: Decision): string | null {
  if (name === null) return null;
  if (ruledOut.length === 0) return "none";
  const shown = ruledOut.slice(0, RULED_OUT_SHOWN).map(({ engine, message }) => `${engine}: ${message}`);
  const more = ruledOut.length - shown.length;
  return `${shown.join("; ")}${more === 0 ? "" : `; and ${more} more`}`;
}

function weightWords({ weight, attempts, cluster, class: name }: Decision): string | null {
  const engine = attempts.at(-1)?.engine;
  if (weight === null || engine === undefined) return null;
  return `${percent(weight)} of ${cluster}'s ${name} goes to ${engine} by the plan`;
}

function addendWords({ addends, attempts }: Decision): string | null {
  if (addends === null) return null;
  const { networkMs, serviceMs, congestionMs, capacityPriceMs, stabilityMs } = addends;
  const parts: readonly (readonly [string, number])[] = [
    ["network", networkMs],
    ["service", serviceMs],
    ["congestion", congestionMs],
    ["capacity", capacityPriceMs],
    ["stability", stabilityMs],
  ];
  const sumMs = parts.reduce((sum, [, ms]) => sum + ms, 0);
  const shown = parts.map(([name, ms]) => `${name} ${ms.toFixed(2)}`).join(" + ");
  return `${shown} = ${sumMs.toFixed(2)} ms: what one more request at ${attempts.at(-1)?.engine} costs the fleet`;
}

const SHEDS: Readonly<Record<NonNullable<Decision["shed"]>["reason"], string>> = {
  planned: "the plan can't serve all",
  "gateway-limit": "the gateway holds as many requests as it may",
  "engine-limit": "every engine that could serve it holds as many requests as it may",
  "class-limit": "the engines of its model hold more than at full load",
  priority: "the room that is left is for higher priorities",
  "queue-full": "as many requests wait as may",
  "queue-timeout": "no room came while it could wait",
};

function shedWords({ shed, class: name, cluster, snapshot }: Decision): string | null {
  if (shed === null || name === null) return null;
  const why = `${shed.reason}: ${SHEDS[shed.reason]}`;
  if (snapshot === 0) return why;
  const part =
    shed.plannedPart === 0 ? `nothing of ${cluster}'s ${name}` : `${percent(shed.plannedPart)} of ${cluster}'s ${name}`;
  return `${why}; the plan sheds ${part}, of which one more request costs the fleet ${shed.priceMs.toFixed(2)} ms`;
}

function endWords(decision: Decision): string {
  const { outcome, error, ttftMs, promptTokens, completionTokens, cachedTokens, tokensFrom } = decision;
  if (outcome === null) return "not yet: it runs";
  const parts = [outcome + (error === null ? "" : ` (${error}, said by the gateway)`)];
  if (ttftMs !== null) parts.push(`first content after ${ms(ttftMs)} ms`);
  if (tokensFrom === "events") parts.push(`${completionTokens} events with content; it told no usage`);
  else if (tokensFrom !== null) {
    const cached = cachedTokens === null ? "" : ` (${cachedTokens} cached)`;
    const partial = tokensFrom === "partial" ? ", so far as it came" : "";
    parts.push(`${promptTokens ?? "?"} prompt tokens${cached}, ${completionTokens ?? 0} completion tokens${partial}`);
  }
  return parts.join("; ");
}

function attemptTable({ attempts }: Decision): string {
  return showTable(
    ["attempt", "engine", "reason", "outcome", "status", "connect ms", "head ms", "first token ms", "end ms", "bytes"],
    attempts.map((each, at) => [
      String(at + 1),
      each.engine,
      each.reason,
      each.outcome,
      each.status === null ? "–" : String(each.status),
      each.connectMs === null ? "–" : ms(each.connectMs),
      each.headMs === null ? "–" : ms(each.headMs),
      each.firstTokenMs === null ? "–" : ms(each.firstTokenMs),
      ms(each.endMs),
      String(each.bytes),
    ]),
  );
}

function ms(value: number): string {
  return value.toFixed(1);
}

function percent(part: number): string {
  return `${(part * 100).toFixed(2)} %`;
}
