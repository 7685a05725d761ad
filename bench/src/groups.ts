import type { BenchGroup } from "./case.ts";
import { crossing } from "./crossing.ts";
import { pick } from "./pick.ts";
import { route } from "./route.ts";
import { solve } from "./solve.ts";
import { solver } from "./solver.ts";

export const groups: readonly BenchGroup[] = [crossing, pick, route, solve, solver];
