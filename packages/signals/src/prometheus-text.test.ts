import { describe, expect, it } from "vitest";
import { parsePrometheusText } from "./prometheus-text.ts";

const all = () => true;

describe("Prometheus text", () => {
  it("reads names, labels and values, and passes over comments, timestamps and exemplars", () => {
    const page = parsePrometheusText(
      [
        "# HELP a Something.",
        "# TYPE a counter",
        'a{model_name="x",engine="0"} 3.0',
        'a{model_name="x",engine="1",} 4 1395066363000',
        "b 1e3",
        '  c_bucket { le = "+Inf" }  7 # {trace_id="KOO5S4vxi0o"} 0.67 1520879607.789',
        "",
        "# EOF",
      ].join("\n"),
      all,
    );
    expect(Object.fromEntries(page.samples)).toEqual({
      a: [
        { labels: { model_name: "x", engine: "0" }, value: 3 },
        { labels: { model_name: "x", engine: "1" }, value: 4 },
      ],
      b: [{ labels: {}, value: 1000 }],
      c_bucket: [{ labels: { le: "+Inf" }, value: 7 }],
    });
    expect(page).toMatchObject({ badLines: 0, truncated: false });
  });

  it.each([
    ["0", 0],
    ["-1.5", -1.5],
    [".5", 0.5],
    ["2.", 2],
    ["+4", 4],
    ["6.634254336e+09", 6_634_254_336],
    ["NaN", Number.NaN],
    ["+Inf", Number.POSITIVE_INFINITY],
    ["-Inf", Number.NEGATIVE_INFINITY],
    ["inf", Number.POSITIVE_INFINITY],
  ])("reads the value %s", (text, value) => {
    expect(parsePrometheusText(`a ${text}\n`, all).samples.get("a")).toEqual([{ labels: {}, value }]);
  });

  it("B126: undoes the three escapes of a label and keeps braces, commas and hashes inside it", () => {
    const page = parsePrometheusText('a{x="q\\"\\\\\\n\\t} , # {",y=""} 1\n', all);
    expect(page.samples.get("a")).toEqual([{ labels: { x: 'q"\\\n\\t} , # {', y: "" }, value: 1 }]);
  });

  it("takes a label that is called like a part of every object as any other", () => {
    const [sample] = parsePrometheusText('a{__proto__="p",constructor="c"} 1\n', all).samples.get("a")!;
    expect(Object.entries(sample!.labels)).toEqual([
      ["__proto__", "p"],
      ["constructor", "c"],
    ]);
  });

  it.each([
    "a",
    "a ",
    "a x",
    "a 0x10",
    'a{b="c" 1',
    "a{b=c} 1",
    'a{b="c"',
    'a{="c"} 1',
    'a{b="c"d="e"} 1',
    'a{b="c\\"} 1',
  ])("counts the malformed line %j and reads the rest", (line) => {
    const page = parsePrometheusText(`${line}\nok 1\n`, all);
    expect(page.badLines).toBe(1);
    expect([...page.samples.keys()]).toEqual(["ok"]);
  });

  it("does not take the cut-off last line of a page for a number", () => {
    // Cut from "running 128".
    const page = parsePrometheusText("running 7\nrunning 12", all);
    expect(page.samples.get("running")).toEqual([{ labels: {}, value: 7 }]);
    expect(page.truncated).toBe(true);
    expect(parsePrometheusText("running 7\n# EOF", all).truncated).toBe(false);
  });

  it("B122: gives nothing for an empty page, and for one that is not metrics", () => {
    expect(parsePrometheusText("", all)).toMatchObject({ badLines: 0, truncated: false });
    expect(parsePrometheusText("<html>\n<body>Not found</body>\n", (name) => name === "a").samples.size).toBe(0);
  });

  it("reads carriage returns as blanks", () => {
    expect(parsePrometheusText("a 1\r\nb 2\r\n", all).samples.get("b")).toEqual([{ labels: {}, value: 2 }]);
  });

  it("refuses a line of more than 64 Ki characters but reads one just below", () => {
    const page = (length: number) => parsePrometheusText(`a{b="${"x".repeat(length)}"} 1\nok 1\n`, all);
    expect(page(65_000).samples.get("a")).toHaveLength(1);
    expect(page(66_000)).toMatchObject({ badLines: 1 });
    expect(page(66_000).samples.has("ok")).toBe(true);
  });

  it("looks only at series that are wanted: a malformed stranger is not counted", () => {
    const page = parsePrometheusText("stranger{broken 1\na 2\n", (name) => name === "a");
    expect(page.badLines).toBe(0);
    expect([...page.samples.keys()]).toEqual(["a"]);
  });
});
