import type { EngineFailure } from "./engine-client.ts";

/** Why no connection came about, by node's error. */
export function connectFailure(error: Error & { readonly code?: string | undefined }): EngineFailure {
  const code = error.code ?? "";
  const message = error.message === "" ? code : error.message;
  if (NO_DESCRIPTORS.has(code)) return { kind: "no-descriptors", message };
  if (code === "ECONNREFUSED") return { kind: "refused", message: "connection refused" };
  const tls = code.startsWith("ERR_SSL") || code.startsWith("ERR_TLS") || TLS_CODES.has(code);
  return { kind: tls ? "tls" : "unreachable", message };
}

/** The process or its host is out of what a connection needs. */
const NO_DESCRIPTORS: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL"]);

const TLS_CODES: ReadonlySet<string> = new Set([
  "EPROTO",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
]);
