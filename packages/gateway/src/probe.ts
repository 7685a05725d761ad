import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import type { Clock } from "@guidevane/core";
import type { ProbeResult } from "@guidevane/guard";

/** Asks one engine how it is. `path` null = only knock: does the port take a connection? Never rejects. */
export type Probe = (url: URL, path: string | null, timeoutMs: number, clock: Clock) => Promise<ProbeResult>;

export const probeOverHttp: Probe = (url, path, timeoutMs, clock) =>
  path === null ? knock(url, timeoutMs, clock) : ask(url, path, timeoutMs, clock);

function ask(url: URL, path: string, timeoutMs: number, clock: Clock): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    // A connection of its own: a probe must find out whether a new one can be had.
    const request = send(new URL(path, url), { agent: false, method: "GET" }, (response) => {
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

function knock(url: URL, timeoutMs: number, clock: Clock): Promise<ProbeResult> {
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

function failure(error: NodeJS.ErrnoException): ProbeResult {
  return error.code === "ECONNREFUSED" ? { kind: "refused" } : { kind: "failed", why: error.message };
}
