/** What a command's end means to its caller. */
export const EXIT = { done: 0, failed: 1, badInput: 2, deadline: 3, invalidProblem: 4 } as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
