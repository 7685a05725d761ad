import { readFileSync } from "node:fs";
import { deserialize } from "node:v8";
import { createSimplex, type Problem, randomInstance } from "@guidevane/optimizer";

/**
 * `node src/solver-memory.ts PROBLEM ts|native` prints by how many bytes one solve raises the process's peak. A process of
 * its own, with the problem read as it is: making an instance leaves garbage that would hide the solve.
 */
const [path, kind] = process.argv.slice(2);
const problem = deserialize(readFileSync(path!)) as Problem;
const simplex = createSimplex(kind as "ts" | "native");
// So that loading the code is not counted.
simplex.solve(randomInstance({ cells: 5, engines: 5, seed: 1 }));
const before = process.resourceUsage().maxRSS;
simplex.solve(problem);
console.log((process.resourceUsage().maxRSS - before) * 1024);
