import { describe, expect, it } from "vitest";
import type { AttemptVerdict } from "./attempt-result.ts";
import { NewsBatch, type NewsMessage, tellNews } from "./news-batch.ts";
import type { ThreadNews } from "./request-thread.ts";

const success: AttemptVerdict = {
  outcome: "success",
  status: 200,
  connectMs: null,
  failure: null,
  retryAfterMs: null,
  answer: null,
};
const refused: AttemptVerdict = {
  outcome: "fault",
  status: null,
  connectMs: 1.5,
  failure: { kind: "refused", message: "connect ECONNREFUSED" } as AttemptVerdict["failure"],
  retryAfterMs: 0,
  answer: null,
};

type Call = { [Name in keyof ThreadNews]: [Name, ...Parameters<ThreadNews[Name]>] }[keyof ThreadNews];

/** One call of each kind, and of each with nothing where nothing may be. */
const calls: Call[] = [
  ["attemptBegan", 0, { engine: "e0", requestClass: "chat", promptTokens: 512 }],
  ["attemptBegan", 1, { engine: "e1", requestClass: "chat", promptTokens: null }],
  ["firstToken", 0, 41.5],
  ["heard", "e0"],
  ["attemptEnded", 0, "e0", { ...success, answer: { tbotMs: 9.25 } }],
  ["attemptEnded", 1, "e1", success],
  ["idle", 7],
  ["attemptBegan", 2 ** 40, { engine: "e1", requestClass: "", promptTokens: 0 }],
  ["attemptEnded", 2 ** 40, "e1", refused],
  ["failed", "id", "Error: no", "Error: no\n  at route"],
  ["failed", "id", "Error: no", undefined],
];

function told(messages: readonly NewsMessage[]): Call[] {
  const heard: Call[] = [];
  const news = Object.fromEntries(
    ["attemptBegan", "firstToken", "attemptEnded", "heard", "idle", "failed"].map((name) => [
      name,
      (...given: unknown[]) => heard.push([name, ...given] as Call),
    ]),
  ) as unknown as ThreadNews;
  // As a message port hands it over.
  for (const message of messages) tellNews(structuredClone(message), news);
  return heard;
}

function gather(tell: (news: ThreadNews) => void): NewsMessage[] {
  const sent: NewsMessage[] = [];
  const batch = new NewsBatch((message) => sent.push(message));
  tell(batch.news);
  batch.flush();
  return sent;
}

const call = (news: ThreadNews, [name, ...given]: Call): void =>
  (news[name] as (...given: unknown[]) => void)(...given);

describe("what a thread tells another one", () => {
  it("arrives as it was told, in order", () => {
    const sent = gather((news) => {
      for (const each of calls) call(news, each);
    });
    expect(told(sent)).toEqual(calls);
  });

  it("goes at once when an engine refuses or a request failed, with all before it", () => {
    const sent = gather((news) => {
      for (const each of calls) call(news, each);
    });
    // Up to the refusal, and a failure each.
    expect(sent).toHaveLength(3);
    expect(told(sent.slice(0, 1))).toEqual(calls.slice(0, 9));
  });

  it("has each word once, however many attempts", () => {
    const [message, ...more] = gather((news) => {
      for (let attempt = 0; attempt < 1000; attempt++) {
        news.attemptBegan(attempt, { engine: `e${attempt % 2}`, requestClass: "chat", promptTokens: 10 });
        news.attemptEnded(attempt, `e${attempt % 2}`, success);
      }
    });
    expect(message!.words.toSorted()).toEqual(["chat", "e0", "e1", "success"]);
    expect(more).toEqual([]);
  });

  it("is nothing when there is nothing to tell", () => {
    expect(gather(() => {})).toEqual([]);
  });
});
