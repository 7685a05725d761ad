import { accessSync, constants, existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { makeFolders } from "@guidevane/store";
import { badUsage } from "./exit-code.ts";

/** Makes the folder that a program keeps its files in, with those above it. @throws GuidevaneError `bad_usage` */
export function makeOwnFolder(flag: string, path: string): void {
  const why = whyNoFolder(path);
  if (why !== null) badUsage(flag, path, `must be a folder that can be written to; ${why}`);
}

/**
 * Makes the folder of a file that a program writes at its end, with those above it: before the work, which may be long.
 *
 * @throws GuidevaneError `bad_usage`
 */
export function makeFolderOf(flag: string, file: string): void {
  if (existsSync(file) && statSync(file).isDirectory())
    badUsage(flag, file, "must be a file; a folder is in its place");
  const why = whyNoFolder(dirname(file));
  if (why !== null) badUsage(flag, file, `must be a file in a folder that can be written to; ${why}`);
}

/** Null when the folder is there, made now or before, and can be written to. */
function whyNoFolder(path: string): string | null {
  try {
    makeFolders(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return whyNot(error as NodeJS.ErrnoException);
  }
}

function whyNot({ code, message }: NodeJS.ErrnoException): string {
  switch (code) {
    case "EEXIST":
    case "ENOTDIR":
      return "a file is in its place";
    case "ENOENT":
      return "the system makes no folder there";
    case "EACCES":
    case "EPERM":
      return "this user may not";
    case "EROFS":
      return "the file system is read-only";
    default:
      return message;
  }
}
