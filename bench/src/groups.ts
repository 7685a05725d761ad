import type { BenchGroup } from "./case.ts";
import { crossing } from "./crossing.ts";
import { solve } from "./solve.ts";

export const groups: readonly BenchGroup[] = [crossing, solve];
