import { isAlias, isCollection, isPair, isScalar, parseDocument, visit } from "yaml";
import type { z } from "zod";
import { GuidevaneError, type InputProblem, problem, showProblem } from "./errors.ts";

type DocumentCode = "bad_fleet" | "bad_profile" | "bad_network" | "bad_snapshot" | "bad_demand" | "bad_problem";

/**
 * YAML 1.2 core text to plain data. No anchors and no aliases (a file that repeats itself by reference can't be read
 * line by line), no duplicate keys.
 *
 * @throws GuidevaneError `code`, with one problem per fault
 */
export function parseYaml(text: string, name: string, code: DocumentCode): unknown {
  const document = parseDocument(text, { version: "1.2", schema: "core", merge: false, uniqueKeys: true });
  const problems: InputProblem[] = document.errors.map((error) => {
    const line = error.linePos?.[0].line;
    const at = `${name}${line === undefined ? "" : `:${line}`}`;
    if (error.code === "DUPLICATE_KEY") {
      const key = /^\s*(?:- )?["']?([^"':\s]+)/.exec(text.slice(error.pos[0]))?.[1];
      return problem("duplicate_id", at, key, "this name stands twice in one mapping");
    }
    return problem("syntax", at, undefined, error.message.split("\n")[0] ?? "not YAML");
  });
  visit(document, (_key, node) => {
    // As a key of an object it would not be one of its names, and would be passed over.
    if (isPair(node) && isScalar(node.key) && node.key.value === "__proto__")
      problems.push(problem("invalid_value", name, "__proto__", "is not read as a name"));
    if (isAlias(node)) problems.push(problem("syntax", name, `*${node.source}`, "aliases are not read"));
    else if ((isCollection(node) || isScalar(node)) && node.anchor !== undefined)
      problems.push(problem("syntax", name, `&${node.anchor}`, "anchors are not read"));
  });
  refuse(code, name, problems);
  return document.toJS() as unknown;
}

/**
 * `data` as its schema reads it, defaults in place.
 *
 * @param knownKeys names that an unknown key is compared with, to say which unit it lacks
 * @throws GuidevaneError `code`, with one problem per fault
 */
export function parseBy<Schema extends z.ZodType>(
  schema: Schema,
  data: unknown,
  name: string,
  code: DocumentCode,
  knownKeys: ReadonlySet<string> = new Set(),
): z.output<Schema> {
  const parsed = schema.safeParse(data);
  if (parsed.success) return parsed.data;
  throw refusal(code, name, schemaProblems(parsed.error, data, knownKeys));
}

/** What a zod schema found wrong with `data`, in our words: unknown keys one by one, each with its value. */
export function schemaProblems(error: z.ZodError, data: unknown, knownKeys: ReadonlySet<string>): InputProblem[] {
  return error.issues.flatMap((issue) => issueProblems(issue, data, knownKeys));
}

/** Throws `code` if there is any problem; the message has all of them, a line each. */
export function refuse(code: DocumentCode, name: string, problems: readonly InputProblem[]): void {
  if (problems.length > 0) throw refusal(code, name, problems);
}

function refusal(code: DocumentCode, name: string, problems: readonly InputProblem[]): GuidevaneError {
  const lines = problems.map((each) => `  ${showProblem(each)}`).join("\n");
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return new GuidevaneError(code, `${name}: ${count}\n${lines}`, { problems });
}

function issueProblems(issue: z.core.$ZodIssue, data: unknown, knownKeys: ReadonlySet<string>): InputProblem[] {
  const at = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => {
      const path = [...at, key];
      const meant = UNITS.map((unit) => key + unit).find((candidate) => knownKeys.has(candidate));
      return meant === undefined
        ? problem("unknown_key", path.join("."), valueAtPath(data, path), "is not a key here")
        : problem(
            "missing_unit",
            path.join("."),
            valueAtPath(data, path),
            `has no unit in its name; write \`${meant}\``,
          );
    });
  }
  if (issue.code === "invalid_key" || issue.code === "invalid_element") {
    return issue.issues.flatMap((inner) =>
      issueProblems({ ...inner, path: [...issue.path, ...inner.path] }, data, knownKeys),
    );
  }
  const value = valueAtPath(data, at);
  if (value === undefined && issue.code === "invalid_type") {
    return [problem("missing_key", at.join("."), undefined, "is required")];
  }
  return [problem("invalid_value", at.join("."), value, issue.message.replace(/^Invalid input: /, ""))];
}

/** The value at `path` in plain data, or undefined where nothing stands. */
export function valueAtPath(data: unknown, path: readonly string[]): unknown {
  let at = data;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}

const UNITS = ["Ms", "Rps", "Wps", "Bytes", "Tokens", "PerMs", "Ratio"];
