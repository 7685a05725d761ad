import type { Workload } from "../workload.ts";
import { placeRequests, type TraceRequest } from "./place-requests.ts";
import { badLine, csvRows, jsonLines, numberAt, type TraceOptions } from "./trace-options.ts";

/**
 * One's own trace, CSV or JSONL: `t_s`, `prompt_tokens`, `output_tokens`, and if known `session`, `cluster`, `class`
 * (docs/policy-lab.md).
 *
 * @throws GuidevaneError `bad_trace` naming the line
 */
export function readOwnTrace(text: string, options: TraceOptions): Workload {
  const { name, fleet } = options;
  const rows: { line: number; cells: Record<string, unknown> }[] = text.trimStart().startsWith("{")
    ? jsonLines(name, text).map(({ line, value }) => ({ line, cells: value }))
    : csvRows(text);
  const requests = rows.map(({ line, cells }): TraceRequest => {
    const given = (key: string): string | undefined => {
      const value = cells[key];
      return value === undefined || value === "" || value === null ? undefined : String(value);
    };
    const known = (key: "cluster" | "class", names: readonly string[] | undefined): string | undefined => {
      const value = given(key);
      if (value === undefined || names === undefined || names.includes(value)) return value;
      return badLine(name, line, `${key} is none of ${fleet!.name}, which has ${names.join(", ")}`, value);
    };
    return {
      atMs: 1000 * numberAt(name, line, "t_s", cells.t_s, 0),
      promptTokens: numberAt(name, line, "prompt_tokens", cells.prompt_tokens, 1),
      outputTokens: numberAt(name, line, "output_tokens", cells.output_tokens, 0),
      ...optional("session", given("session")),
      ...optional("cluster", known("cluster", fleet?.clusters)),
      ...optional("requestClass", known("class", fleet?.classes)),
    };
  });
  return placeRequests(requests, options, ["a session's next prompt begins with the one before and its answer"]);
}

function optional<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: string });
}
