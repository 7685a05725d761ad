import { GuidevaneError } from "@guidevane/core";

const WHY: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EISDIR: "a folder",
  EACCES: "this user may not",
  EPERM: "this user may not",
};

/** `bad_usage` for a file that can't be read. @param name what it is to the command: `fleet file` */
export function unreadable(name: string, path: string, error: unknown): GuidevaneError {
  const { code } = error as NodeJS.ErrnoException;
  const why = code === undefined ? String(error) : (WHY[code] ?? code);
  return new GuidevaneError("bad_usage", `${name}: can't read ${JSON.stringify(path)} (${why})`, { cause: error });
}
