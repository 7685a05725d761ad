/** Something that waits for the end of the present turn of the event loop. */
export interface TurnEndTask {
  atTurnEnd(): void;
}

let waiting: TurnEndTask[] = [];

/**
 * Runs it once all that there was to read has been read, in order. Under load a turn reads from many connections: to write
 * to all of them then wakes their readers once where they would be woken, and fall asleep, each time. With one connection at
 * a time it is the next thing that is done.
 */
export function atTurnEnd(task: TurnEndTask): void {
  if (waiting.push(task) === 1) setImmediate(endTurn);
}

function endTurn(): void {
  const tasks = waiting;
  waiting = [];
  let done = 0;
  try {
    while (done < tasks.length) tasks[done++]!.atTurnEnd();
  } finally {
    for (; done < tasks.length; done++) atTurnEnd(tasks[done]!);
  }
}
