/** Where publications are kept: the `Store` port of `@guidevane/core` over a directory. */
export { type DirectoryStoreOptions, openDirectoryStore } from "./directory-store.ts";
export { makeFolders } from "./files.ts";
