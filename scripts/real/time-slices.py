#!/usr/bin/env python3
"""Engines that share one core, each at the speed of a machine of its own: they run in turn, so long each.

    time-slices.py keep-awake|let-sleep CORE SLICE_MS SPEED PID…

pins the processes to the core and stops all but one of them at a time, in turn, until its standard input ends; then all go on. An
engine so gets the same part of the core whether the others are idle or busy, which processes that merely share a core do not: one
would be the faster the less the others have to do. Only for Linux, and for processes of the same user.

A virtual core is up to half as slow again while its host is busy, for seconds or minutes. So that engines are as fast at all times, one
runs only for a part of its slice: as long as the core needs, by what it did last with a piece of fixed work, for what it does in a
whole slice at SPEED, pieces/ms. With SPEED 0 it is `PART` of the best that is seen in the first seconds, printed as `speed: …`. At the
end it prints the part of the slices in which the core was slower than that.

With keep-awake no core sleeps meanwhile: on each a process of the lowest class there is does nothing. A virtual core that goes to sleep between
two turns takes a while to come back: beside idle ones an engine gave its tokens at half the speed that it had while the machine
was busy with something else.
"""
import collections
import ctypes
import os
import select
import signal
import sys
import time

tgkill = ctypes.CDLL(None, use_errno=True).tgkill


PART = 0.6
BEST_OF_S = 4
# About 0.1 ms.
PIECE = range(3000)
# The core's speed is that of so many slices.
REMEMBERED = 12


def piece_ms():
    """Of a fixed piece of work on this core."""
    start = time.perf_counter()
    total = 0
    for each in PIECE:
        total += each
    return 1000 * (time.perf_counter() - start)


def reachable_speed():
    """PART of the core's best, pieces/ms."""
    until = time.monotonic() + BEST_OF_S
    times = []
    while time.monotonic() < until:
        times.append(piece_ms())
    return PART / sorted(times)[len(times) // 10]


class Engine:
    def __init__(self, process, core):
        self.process = process
        threads = [int(name) for name in os.listdir(f"/proc/{process}/task")]
        # The thread that computes. A stop sent to the process would be taken by one that sleeps, and that one only runs, and
        # stops the others, when the one that computes lets it.
        self.thread = max(threads, key=self.core_ns)
        for thread in threads:
            os.sched_setaffinity(thread, {core})

    def core_ns(self, thread):
        with open(f"/proc/{self.process}/task/{thread}/schedstat") as file:
            return int(file.read().split()[0])

    def send(self, number):
        # An engine that has ended has no more turns to keep.
        tgkill(self.process, self.thread, number)


def stay_awake(core):
    """A process that keeps the core busy when nothing else wants it, as long as this one lives."""
    parent = os.getpid()
    child = os.fork()
    if child != 0:
        return child
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while os.getppid() == parent:
        for _ in range(100_000):
            pass
    os._exit(0)


def take_turns(engines, slice_s, speed):
    """Until standard input ends; the part of the slices in which the core was slower than `speed`."""
    pieces = collections.deque([1 / speed], REMEMBERED)
    slow = slices = 0
    begin = time.monotonic()
    while True:
        engine = engines[slices % len(engines)]
        part = speed * sum(pieces) / len(pieces)
        slices += 1
        slow += part > 1
        engine.send(signal.SIGCONT)
        ended = wait_until(begin + slice_s * min(part, 1) - pieces[-1] / 1000)
        engine.send(signal.SIGSTOP)
        pieces.append(piece_ms())
        begin += slice_s
        if ended or wait_until(begin):
            return slow / slices


def wait_until(second):
    """True when standard input has ended by then."""
    return bool(select.select([sys.stdin], [], [], max(0, second - time.monotonic()))[0])


def main():
    core, slice_s, speed = int(sys.argv[2]), float(sys.argv[3]) / 1000, float(sys.argv[4])
    engines = [Engine(int(process), core) for process in sys.argv[5:]]
    awake = [stay_awake(each) for each in range(os.cpu_count())] if sys.argv[1] == "keep-awake" else []
    for engine in engines:
        engine.send(signal.SIGSTOP)
    os.sched_setaffinity(0, {core})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    except PermissionError:
        # Then a turn ends the later the more runs on the core.
        pass
    try:
        speed = speed or reachable_speed()
        print(f"speed: {speed:.3f}", flush=True)
        print(f"slow: {take_turns(engines, slice_s, speed):.4f}", flush=True)
    finally:
        for engine in engines:
            engine.send(signal.SIGCONT)
        for child in awake:
            os.kill(child, signal.SIGKILL)


main()
