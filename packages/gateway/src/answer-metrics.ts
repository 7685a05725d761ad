import type { AttemptReport } from "./attempt-result.ts";
import { type GatewayMetrics, OTHER } from "./metrics.ts";

/** What one attempt's answer adds to the metrics. */
export function countAnswer(
  metrics: GatewayMetrics,
  requestClass: string | undefined,
  arrivedMs: number,
  { outcome, answer }: Pick<AttemptReport, "outcome" | "answer">,
): void {
  if (answer === null) return;
  const name = requestClass ?? OTHER;
  // A refused request, or one that another engine answers, has had no answer.
  if (answer.unread !== null) {
    if (outcome === "success") metrics.answersUnread.inc({ class: name });
    return;
  }
  if (answer.malformedEvents > 0) metrics.malformedEvents.inc({ class: name }, answer.malformedEvents);
  if (outcome === "success" && answer.firstContentMs !== null)
    metrics.ttftSeconds.add(name, (answer.firstContentMs - arrivedMs) / 1000);
  if (outcome === "success" && answer.tbotMs !== null) metrics.tbotSeconds.add(name, answer.tbotMs / 1000);
  // Events are no tokens: what no usage told is not counted as such.
  if (answer.tokensFrom !== "usage" && answer.tokensFrom !== "partial") {
    if (outcome === "success") metrics.answersWithoutUsage.inc(name);
    return;
  }
  const { promptTokens, completionTokens, cachedTokens } = answer;
  if (promptTokens !== null) metrics.tokens.inc(name, "prompt", promptTokens);
  if (completionTokens !== null) metrics.tokens.inc(name, "completion", completionTokens);
  if (cachedTokens !== null) metrics.tokens.inc(name, "cached", cachedTokens);
}
