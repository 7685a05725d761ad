#!/usr/bin/env python3
"""A real llama.cpp server from one wheel: no compiler, no download at run time.

    pip install xllamacpp
    llama-server.py MODEL.gguf [--port 0 --slots 4 --context 32768 --threads 1 --prompt-cache-mib 8192]

Prints its address once the model is loaded, and runs until SIGTERM, SIGINT or the end of its standard input, so that it never
outlives who started it. The context is shared by the slots in equal parts. What a slot held is kept in the prompt cache, which is
searched for each request; at 0 MiB there is none.
"""
import argparse
import os
import signal
import sys
import threading

import xllamacpp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--context", type=int, default=32768)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompt-cache-mib", type=int, default=8192)
    wanted = parser.parse_args()

    settings = xllamacpp.CommonParams()
    settings.model.path = wanted.model
    settings.model_alias = {"tiny"}
    settings.hostnames, settings.port = ["127.0.0.1"], wanted.port
    settings.n_ctx, settings.n_parallel = wanted.context, wanted.slots
    settings.n_batch = settings.n_ubatch = 512
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = wanted.threads
    # An answer under way, computed or waiting, has one to itself, and so has each connection of health checks and metrics.
    settings.n_threads_http = wanted.slots + 14
    settings.cache_ram_mib = wanted.prompt_cache_mib
    settings.endpoint_metrics = settings.endpoint_slots = settings.endpoint_props = True
    settings.use_jinja = True
    settings.fit_params = False
    settings.offline = True
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    ended.wait()
    # The server's own threads have no end of their own: what is under way is cut, as by an engine that is stopped.
    os._exit(0)


main()
