// Run by npm before a package is packed, in the package's folder: a tarball carries the licence, the repository has it once.
import { copyFileSync } from "node:fs";

copyFileSync(new URL("../LICENSE", import.meta.url), "LICENSE");
