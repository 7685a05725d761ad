#!/usr/bin/env python3
"""Engines that share one core, each at the speed of a machine of its own: they run in turn, so long each.

    time-slices.py keep-awake|let-sleep CORE SLICE_MS PID…

pins the processes to the core and stops all but one of them at a time, in turn, until its standard input ends; then all go on. An
engine so gets the same part of the core whether the others are idle or busy, which processes that merely share a core do not: one
would be the faster the less the others have to do. Only for Linux, and for processes of the same user.

With keep-awake no core sleeps meanwhile: on each a process of the lowest class there is does nothing. A virtual core that goes to sleep between
two turns takes a while to come back: beside idle ones an engine gave its tokens at half the speed that it had while the machine
was busy with something else.
"""
import ctypes
import os
import select
import signal
import sys
import time

tgkill = ctypes.CDLL(None, use_errno=True).tgkill


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


def main():
    core, slice_s = int(sys.argv[2]), float(sys.argv[3]) / 1000
    engines = [Engine(int(process), core) for process in sys.argv[4:]]
    awake = [stay_awake(each) for each in range(os.cpu_count())] if sys.argv[1] == "keep-awake" else []
    for engine in engines:
        engine.send(signal.SIGSTOP)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
    except PermissionError:
        # Then a turn ends the later the more runs on the other cores.
        pass
    print("running", flush=True)
    until = time.monotonic()
    turn = 0
    try:
        while not select.select([sys.stdin], [], [], max(0, until - time.monotonic()))[0]:
            engines[turn - 1].send(signal.SIGSTOP)
            engines[turn].send(signal.SIGCONT)
            turn = (turn + 1) % len(engines)
            until += slice_s
    finally:
        for engine in engines:
            engine.send(signal.SIGCONT)
        for child in awake:
            os.kill(child, signal.SIGKILL)


main()
