import { parentPort, workerData } from "node:worker_threads";
import { createRouterFactory } from "@guidevane/selector";
import { figuresOf } from "./metrics.ts";
import { NewsBatch } from "./news-batch.ts";
import { RequestThread } from "./request-thread.ts";
import { clockOfThread } from "./thread-clock.ts";
import type { Order, Word, WorkerStart } from "./thread-messages.ts";

/** A request thread in a worker of its own: takes orders, tells what happened. */

/** How long arrivals and ends of attempts may wait to be told together. */
const TELL_EVERY_MS = 100;

const port = parentPort;
if (port === null) throw new Error("this module is the entry of a worker thread");
const {
  selector,
  state,
  retryMemory,
  streamMemory,
  thread: index,
  clockZeroMs,
  controlSilentMs,
  responseMemory,
  settings,
  first,
} = workerData as WorkerStart;

const tell = (word: Word): void => port.postMessage(word);
const news = new NewsBatch((message) => tell({ kind: "news", message }));
const thread = new RequestThread({
  clock: clockOfThread(clockZeroMs),
  random: Math.random,
  factory: createRouterFactory(selector),
  state,
  retryMemory,
  streamMemory,
  thread: index,
  controlSilentMs,
  responseMemory,
  settings,
  first,
  news: news.news,
});

const timer = setInterval(() => {
  news.flush();
  const arrived = thread.takeArrivals();
  if (arrived.size > 0) tell({ kind: "arrivals", arrived });
}, TELL_EVERY_MS);

async function obey(order: Order): Promise<void> {
  switch (order.kind) {
    case "use":
      return thread.use(order.compiled);
    case "configure":
      return thread.configure(order.settings);
    case "gateways":
      return thread.setGateways(order.count);
    case "control-heard":
      return thread.controlHeard();
    case "engine-died":
      return thread.engineDied(order.engine);
    case "metrics":
      return tell({ kind: "metrics", ticket: order.ticket, figures: await figuresOf(thread.metrics.registry) });
    case "decision":
      return tell({ kind: "decision", ticket: order.ticket, decision: thread.findDecision(order.id) });
    case "listen":
      try {
        tell({ kind: "listening", url: await thread.listen(order.address, true) });
      } catch (error) {
        const { message, code } = error as NodeJS.ErrnoException;
        tell({ kind: "not-listening", message, code });
      }
      return;
    case "stop":
      await thread.stop(order.graceMs);
      clearInterval(timer);
      news.flush();
      tell({ kind: "arrivals", arrived: thread.takeArrivals() });
      tell({ kind: "stopped" });
      port!.close();
  }
}

port.on("message", (order: Order) => {
  // A failure here is nobody's to handle: it ends the thread, which is told of and replaced.
  void obey(order);
});
tell({ kind: "ready" });
