/** Where a test and its mortal request workers talk. */
export const MORTALS = "guidevane test: mortal request workers";

/** `null` asks the living for their ids; an id tells that thread to die. */
export type MortalOrder = null | number;
