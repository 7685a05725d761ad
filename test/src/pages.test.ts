import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { loadFleet } from "@guidevane/core";
import { figuresOf, POLICIES, reportOf, reportPage, runLab, syntheticWorkload } from "@guidevane/simulator";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, openBrowser, openPage, type WatchedPage } from "./browser.ts";
import { Whole } from "./whole.ts";

const executable = findChromium();
const why = executable === undefined ? " (skipped: no chromium in PATH; set GUIDEVANE_CHROMIUM)" : "";

const FLEET = `
clusters: { east: { region: east }, west: { region: west } }
engines:
  east-1: { url: "http://a:1", region: east, models: [m], capacityWps: 10 }
  west-1: { url: "http://b:1", region: west, models: [m], capacityWps: 5 }
classes: { chat: { model: m, work: 1 } }
demandRps: { east: { chat: 4 }, west: { chat: 3 } }
`;
const SHOWN = ["guidevane", "random", "waterfall"];

// Texts, since they run in the page, whose types this project does not know.
const PAINTED = `[...document.querySelectorAll("canvas")].map((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.filter((value, at) => at % 4 === 3 && value > 0).length;
})`;
const FIRST_PICTURE = `document.querySelector(".uplot canvas").toDataURL()`;

async function writeReport(folder: string): Promise<string> {
  const fleet = await loadFleet(FLEET, "fleet.yaml", () => Promise.reject(new Error("no files here")));
  const workload = syntheticWorkload({ fleet, seed: 1, seconds: 40, turns: 2, thinkMs: 1000 });
  const slo = { ttftMs: 1000, tbotMs: 40 };
  const figures = POLICIES.filter(({ name }) => SHOWN.includes(name)).map((policy) =>
    figuresOf(runLab({ fleet, workload, policy, seed: 1 }), policy, slo),
  );
  const facts = { command: "guidevane simulate", fleet: "fleet.yaml", seed: 1, slo, conditions: [], workload };
  const path = join(folder, "report.html");
  writeFileSync(path, reportPage(reportOf(facts, figures)));
  return path;
}

describe.skipIf(executable === undefined)(`in a browser${why}`, () => {
  let browser: Browser;
  const folder = mkdtempSync(join(tmpdir(), "guidevane-pages-"));
  beforeAll(async () => {
    browser = await openBrowser(executable!);
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  describe("the lab's report, opened from a disk", () => {
    let report: WatchedPage;
    beforeAll(async () => {
      report = await openPage(browser);
      await report.page.goto(pathToFileURL(await writeReport(folder)).href);
    }, 60_000);

    it("asks for nothing but itself and complains of nothing", () => {
      expect(report.requests).toEqual([report.page.url()]);
      expect(report.complaints).toEqual([]);
    });

    it("draws every chart, and a row of figures for each policy", async () => {
      const painted = await report.page.evaluate<number[]>(PAINTED);
      expect(painted).toHaveLength(6);
      for (const pixels of painted) expect(pixels).toBeGreaterThan(1000);
      expect(await report.page.locator("tbody tr td:first-child").allTextContents()).toEqual(
        expect.arrayContaining(SHOWN),
      );
    });

    it("hides a policy's line when its name is clicked, and shows it again", async () => {
      const chart = report.page.locator(".uplot").first();
      const name = chart.locator(".u-series", { hasText: "random" });
      const picture = (): Promise<string> => report.page.evaluate<string>(FIRST_PICTURE);
      const before = await picture();
      await name.locator("th").click();
      await expect.poll(() => name.getAttribute("class")).toContain("u-off");
      await expect.poll(picture).not.toBe(before);
      await name.locator("th").click();
      await expect.poll(() => name.getAttribute("class")).not.toContain("u-off");
      await expect.poll(picture).toBe(before);
    });
  });

  describe("the control plane's dashboard", () => {
    const whole = new Whole();
    let url: string;
    beforeAll(async () => {
      const engine = await whole.engine();
      whole.writeFleet({ one: { url: engine.url } }, { demandRps: { a: { chat: 5 } } });
      ({ url } = await whole.control());
    }, 60_000);
    afterAll(() => whole.stop());

    it("shows clusters and engines, speaks to the control plane alone, and complains of nothing", async () => {
      // Before the first plan it has nothing to show, and the page says so.
      await expect.poll(async () => (await fetch(`${url}/readyz`)).status, { timeout: 20_000 }).toBe(200);
      const { page, requests, complaints } = await openPage(browser);
      await page.goto(url);
      await expect.poll(() => page.locator("#engines tbody tr").allTextContents(), { timeout: 20_000 }).toHaveLength(1);
      expect((await page.locator("#engines tbody tr").allTextContents())[0]).toContain("one");
      await expect.poll(() => page.locator("#summary").textContent()).not.toContain("Loading");
      await expect.poll(() => page.locator("#clusters tbody tr").count(), { timeout: 20_000 }).toBeGreaterThan(0);
      expect(requests.length).toBeGreaterThan(1);
      expect(requests.filter((request) => new URL(request).origin !== new URL(url).origin)).toEqual([]);
      expect(complaints).toEqual([]);
    });
  });
});
