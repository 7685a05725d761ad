import { accessSync, constants } from "node:fs";
import { makeFolders } from "@guidevane/store";
import { badUsage } from "./exit-code.ts";

/** Makes the folder that a program keeps its files in, with those above it. @throws GuidevaneError `bad_usage` */
export function makeOwnFolder(flag: string, path: string): void {
  try {
    makeFolders(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    badUsage(flag, path, `must be a folder that can be written to; ${whyNot(error as NodeJS.ErrnoException)}`);
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
