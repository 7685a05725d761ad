import { parentPort, workerData } from "node:worker_threads";
import type { MetricFigures } from "../metrics.ts";
import { NewsBatch } from "../news-batch.ts";
import type { Order, Word, WorkerStart } from "../thread-messages.ts";

/**
 * A request worker that serves nothing and has counted 1. Thread 0 says so at once and then tells of engine `e`, and dies
 * on word of how many gateways there are: at once, or with its next answer where there are none. Thread 1 says it once it
 * hears of the control plane. With another selector than TypeScript's they die at their start.
 */

const { thread, selector } = workerData as WorkerStart;
if (selector !== "ts") throw new Error("this worker routes in TypeScript alone");

const port = parentPort!;
const tell = (word: Word): void => port.postMessage(word);
const batch = new NewsBatch((message) => tell({ kind: "news", message }));
// What prom-client gives is a string, though its declaration says a number.
const figures = [
  { name: "counted_total", help: "One", type: "counter", aggregator: "sum", values: [{ value: 1, labels: {} }] },
] as unknown as MetricFigures;

let ticket = 0;
let endsByAnswer = false;

port.on("message", (order: Order) => {
  if (order.kind === "metrics") ticket = order.ticket;
  if (order.kind === (thread === 0 ? "metrics" : "control-heard")) {
    tell({ kind: "metrics", ticket, figures });
    batch.news.heard("e");
    batch.flush();
    if (endsByAnswer) port.close();
  }
  if (order.kind === "stop") port.close();
  if (order.kind === "gateways" && thread === 0) {
    if (order.count > 0) port.close();
    else endsByAnswer = true;
  }
});
