import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import type { Clock } from "@guidevane/core";
import type { ProbeResult } from "@guidevane/guard";
import type { EngineTlsSecrets } from "./credentials.ts";
import { connectFailure } from "./engine-failure.ts";
import { tlsOptions } from "./engine-tls.ts";

/**
 * Asks one engine how it is. `path` null = only knock: does the port take a connection? Null where it could not be asked
 * for want of descriptors of the gateway's own, which says nothing about the engine. Never rejects.
 */
export type Probe = (
  url: URL,
  path: string | null,
  timeoutMs: number,
  clock: Clock,
  tls: EngineTlsSecrets | null,
) => Promise<ProbeResult | null>;

export const probeOverHttp: Probe = (url, path, timeoutMs, clock, tls) =>
  path === null ? knock(url, timeoutMs, clock) : ask(url, path, timeoutMs, clock, tls);

function ask(
  url: URL,
  path: string,
  timeoutMs: number,
  clock: Clock,
  tls: EngineTlsSecrets | null,
): Promise<ProbeResult | null> {
  return new Promise((resolve) => {
    const secure = url.protocol === "https:";
    const send = secure ? httpsRequest : httpRequest;
    const how = secure ? tlsOptions(url.hostname.replace(/^\[|\]$/g, ""), tls) : {};
    // A connection of its own: a probe must find out whether a new one can be had.
    const request = send(new URL(path, url), { ...how, agent: false, method: "GET" }, (response) => {
      stopTimer();
      response.resume();
      // The status is the answer; the body may take its time.
      request.destroy();
      resolve({ kind: "answer", status: response.statusCode ?? 0 });
    });
    const stopTimer = clock.after(timeoutMs, () => {
      request.destroy();
      resolve({ kind: "late", why: `no answer after ${timeoutMs} ms` });
    });
    request.on("error", (error) => {
      stopTimer();
      resolve(failure(error));
    });
    request.end();
  });
}

function knock(url: URL, timeoutMs: number, clock: Clock): Promise<ProbeResult | null> {
  return new Promise((resolve) => {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const socket = connect({ host, port: Number(url.port) || (url.protocol === "https:" ? 443 : 80) }, () => {
      stopTimer();
      socket.destroy();
      resolve({ kind: "connected" });
    });
    const stopTimer = clock.after(timeoutMs, () => {
      socket.destroy();
      resolve({ kind: "late", why: `no connection after ${timeoutMs} ms` });
    });
    socket.on("error", (error) => {
      stopTimer();
      resolve(failure(error));
    });
  });
}

function failure(error: NodeJS.ErrnoException): ProbeResult | null {
  const { kind, message } = connectFailure(error);
  if (kind === "no-descriptors") return null;
  return kind === "refused" ? { kind } : { kind: "failed", why: message };
}
