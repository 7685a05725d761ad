import { createRequire } from "node:module";

/** Of this package, from its package.json. */
export const VERSION: string = (createRequire(import.meta.url)("../package.json") as { version: string }).version;
