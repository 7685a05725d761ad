import { type Logger, pino } from "pino";

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** JSON lines on stderr, since stdout is for what a command was asked for. `LOG_LEVEL` says how much; default info. */
export function createLog(command: string, env: NodeJS.ProcessEnv): Logger {
  const level = env.LOG_LEVEL ?? "info";
  const known = LEVELS.includes(level);
  const log = pino(
    {
      base: { program: `guidevane ${command}`, pid: process.pid },
      level: known ? level : "info",
      timestamp: pino.stdTimeFunctions.isoTime,
    },
    pino.destination({ dest: 2, sync: true }),
  );
  if (!known) log.warn({ LOG_LEVEL: level }, `LOG_LEVEL is not one of ${LEVELS.join(", ")}; info is used`);
  return log;
}
