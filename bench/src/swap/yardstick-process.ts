import { setPriority } from "node:os";
import { watchTurns } from "./turns.ts";

/**
 * A thread that has nothing to do but to watch its turns: where they are long, the machine stood still, not what is
 * measured. It runs on what others leave of the cores.
 */
const LOWEST = 19;
setPriority(LOWEST);
const look = watchTurns();
process.on("message", () => process.send!(look()));
process.on("disconnect", () => process.exit());
process.send!({});
