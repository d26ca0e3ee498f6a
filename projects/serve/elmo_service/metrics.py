"""What Prometheus reads."""

import threading

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters and gauges of one server, with those of its process (memory, open files)."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        labels = ["path", "status"]
        self.requests = Counter(
            "elmo_requests",
            "Requests by status; 499: the client went away",
            labels,
            registry=registry,
        )
        self.seconds = Histogram(
            "elmo_request_seconds",
            "From the first byte of the body to the answer",
            ["path"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.refusals = Counter("elmo_refusals", "Refusals by code", ["code"], registry=registry)
        self.ended = Counter(
            "elmo_ended_connections", "Ended by the server, by limit", ["limit"], registry=registry
        )
        self.texts = Counter("elmo_texts", "Texts that were read", registry=registry)
        self.tokens = Counter("elmo_tokens", "Tokens that were read", registry=registry)
        self.dropped = Counter(
            "elmo_dropped_texts", "Texts whose client had left, or too late", registry=registry
        )
        self.batch_texts = Histogram(
            "elmo_batch_texts", "Texts of a pass", buckets=_SIZES, registry=registry
        )
        self.batch_seconds = Histogram(
            "elmo_batch_seconds", "Time of a pass", buckets=_SECONDS, registry=registry
        )
        self.waiting = Gauge("elmo_waiting_texts", "Texts that wait for a pass", registry=registry)
        self.unread = Gauge(
            "elmo_unread_bytes", "Of answers that are not sent to their end", registry=registry
        )
        self.strings = Gauge(
            "elmo_vocab_strings", "Strings that the vocab keeps after a pass", registry=registry
        )
        threads = Gauge("elmo_threads", "Threads of Python", registry=registry)
        threads.set_function(threading.active_count)
