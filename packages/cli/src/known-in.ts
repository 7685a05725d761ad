import { knownNames } from "@guidevane/core";
import { badUsage } from "./exit-code.ts";

/** What a flag names. @param what such as `a cluster` @throws GuidevaneError `bad_usage`, with the names that there are */
export function knownIn<T>(flag: string, name: string, what: string, all: ReadonlyMap<string, T>): T {
  const found = all.get(name);
  return found ?? badUsage(flag, name, `is not ${what} of the fleet file; ${knownNames(name, all.keys())}`);
}
