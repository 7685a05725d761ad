import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** GUIDEVANE_CHROMIUM, or what PATH has (Debian: `apt-get install chromium`); undefined where there is none. */
export function findChromium(): string | undefined {
  const inPath = (process.env.PATH ?? "")
    .split(delimiter)
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find(isProgram);
  return process.env.GUIDEVANE_CHROMIUM ?? inPath;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function openBrowser(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
}

/** A page that notes what it asks of the network and what goes wrong in it. */
export interface WatchedPage {
  readonly page: Page;
  readonly requests: string[];
  readonly complaints: string[];
}

export async function openPage(browser: Browser): Promise<WatchedPage> {
  const page = await browser.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => void requests.push(request.url()));
  page.on("pageerror", (error) => void complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  return { page, requests, complaints };
}
