import { readFileSync } from "node:fs";
import { deserialize } from "node:v8";
import { createSimplex, type Problem, randomInstance } from "@guidevane/optimizer";

/**
 * `node src/solver-memory.ts PROBLEM ts|native` prints how many bytes above what it held before the process peaks with one solve. A process of
 * its own, with the problem read as it is: making an instance leaves garbage that would hide the solve.
 */
const [path, kind] = process.argv.slice(2);
const problem = deserialize(readFileSync(path!)) as Problem;
const simplex = createSimplex(kind as "ts" | "native");
// So that loading the code is not counted.
simplex.solve(randomInstance({ cells: 5, engines: 5, seed: 1 }));
// From what is resident now to the highest ever: where loading had a higher peak this says too much, never too little.
const before = process.memoryUsage.rss();
simplex.solve(problem);
console.log(process.resourceUsage().maxRSS * 1024 - before);
