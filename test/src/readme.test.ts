import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readmeCommands, shellCommands } from "./readme.ts";
import { root } from "./repository.ts";

/** Every command of the README is run: here, by another test, or by the CI run. */

const commands = readmeCommands();
const program = /^(?:node packages\/cli\/dist\/main\.js|npx guidevane) (?=fleet |--help|--version)/;
const elsewhere: readonly { readonly command: RegExp; readonly file: string; readonly runs: string }[] = [
  { command: /^npm start$/, file: "test/src/up.test.ts", runs: '"npm", ["start"' },
  { command: /^curl /, file: "test/src/up.test.ts", runs: "readmeCommands()" },
  {
    command: /^npx guidevane explain b chat$/,
    file: "packages/cli/src/ask-control.test.ts",
    runs: 'run("explain", "b", "chat")',
  },
  {
    command: /^npx guidevane why tour-1$/,
    file: "packages/cli/src/command-why.test.ts",
    runs: 'run("tour-1", "--gateway", url)',
  },
  { command: /^npm test$/, file: ".ci/run", runs: "npm test" },
  { command: /^npm run lint$/, file: ".ci/run", runs: "npm run --silent lint" },
  { command: /^npm run typecheck$/, file: ".ci/run", runs: "npm run --silent typecheck" },
  { command: /^npm run build$/, file: ".ci/run", runs: "npm run --silent build" },
  { command: /^npm run short\b/, file: ".ci/run", runs: "npm run --silent short" },
];

describe("the README", () => {
  it("has commands, npm start and npm test among them", () => {
    expect(commands).toEqual(expect.arrayContaining(["npm start", "npm test"]));
  });

  it.each(commands)("has `%s` run", async (command) => {
    if (program.test(command)) {
      expect(await exitCode(command.replace(program, ""))).toBe(0);
      return;
    }
    const place = elsewhere.find((each) => each.command.test(command));
    expect(place, "no test and no CI step runs it").not.toBeUndefined();
    expect(readFileSync(join(root, place!.file), "utf8")).toContain(place!.runs);
  });
});

describe.each(pages())("%s", (page) => {
  const text = readFileSync(join(root, page), "utf8");

  it("has no place left to fill in", () => {
    expect(text).not.toMatch(/@@|\bTBD\b/);
  });

  it("links only to what is there", () => {
    const links = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(([, link]) => link!);
    expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
  });
});

describe("the reader of commands", () => {
  it("takes shell blocks only, without prompts and comments, and joins lines that go on", () => {
    const page = "text\n```sh\n$ npm start   # first\n# alone\ncurl x \\\n  -d y\n```\n```yaml\na: 1\n```\n";
    expect(shellCommands(page)).toEqual(["npm start", "curl x -d y"]);
  });
});

/** The README and the pages under docs. */
function pages(): string[] {
  const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" });
  return ["README.md", ...docs.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`)];
}

/** Runs the built program from the repository's root. */
function exitCode(args: string): Promise<number> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ["packages/cli/dist/main.js", ...args.split(/\s+/)], { cwd: root });
    child.once("exit", (code) => resolve(code ?? -1));
  });
}
