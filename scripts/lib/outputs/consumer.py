"""A consumer of events in a group: fills a hit map for each partition that it is given.

usage: consumer.py BROKER GROUP TOPIC FOLDER

The hit map of a partition and the offset of the next message are one file in FOLDER, replaced as a whole: the next
consumer of the partition continues from there, so each event is counted once. Kafka's own offsets are committed as
well, for programs that show the lag. Prints JSON objects: its partitions, and with each write the events so far and
the seconds that it was busy. Ends on SIGTERM.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from confluent_kafka import Consumer, TopicPartition
from streaming_data_types import deserialise_ev44

PMS = 1952

# Seconds between two writes of the hit maps.
INTERVAL = 0.5


class Shard:
    """The hit map of a partition, and how far it goes."""

    def __init__(self, folder, partition):
        self._path = Path(folder, f"{partition}.json")
        self.hitmap, self.events, self.offset = np.zeros(PMS, np.int64), 0, 0
        if self._path.exists():
            stored = json.loads(self._path.read_text(encoding="utf8"))
            self.hitmap[:], self.events, self.offset = stored["hitmap"], stored["events"], stored["offset"]
        self._stored = self.offset

    def fill(self, message):
        assert message.offset() >= self.offset, f"offset {message.offset()} after {self.offset}"
        data = deserialise_ev44(message.value())
        self.hitmap += np.bincount(data.pixel_id, minlength=PMS)
        self.events += len(data.reference_time)
        self.offset = message.offset() + 1
        return len(data.reference_time)

    def store(self):
        if self.offset == self._stored:
            return
        # A consumer that was stopped for longer than its session lasts no longer owns the partition.
        if self._path.exists() and Shard(self._path.parent, self._path.stem).offset != self._stored:
            raise RuntimeError(f"{self._path} was continued by another consumer")
        temporary = self._path.with_suffix(f".{os.getpid()}.tmp")
        with open(temporary, "w", encoding="utf8") as file:
            json.dump({"offset": self.offset, "events": self.events, "hitmap": self.hitmap.tolist()}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)
        self._stored = self.offset


def main(broker, group, topic, folder):
    shards, ends = {}, []
    signal.signal(signal.SIGTERM, lambda *_: ends.append(True))
    consumer = Consumer({
        "bootstrap.servers": broker, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
        # The shortest times that brokers accept by default: a consumer that is gone is noticed after six seconds.
        "session.timeout.ms": 6000, "max.poll.interval.ms": 6000, "heartbeat.interval.ms": 500})

    def assigned(_, partitions):
        for place in partitions:
            shards[place.partition] = Shard(folder, place.partition)
            place.offset = shards[place.partition].offset
        consumer.assign(partitions)
        print(json.dumps({"assigned": [place.partition for place in partitions]}), flush=True)

    def revoked(_, partitions):
        for place in partitions:
            shards.pop(place.partition).store()

    def lost(_, partitions):
        for place in partitions:
            shards.pop(place.partition)

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
    events, busy, stored = 0, 0.0, time.monotonic()

    def tell():
        print(json.dumps({"events": events, "busy_s": busy}), flush=True)

    while not ends:
        messages = consumer.consume(64, 0.1)
        start = time.monotonic()
        for message in messages:
            assert not message.error(), message.error()
            events += shards[message.partition()].fill(message)
        busy += time.monotonic() - start if messages else 0
        if start - stored > INTERVAL and shards:
            tell()
            begin = time.monotonic()
            for shard in shards.values():
                shard.store()
            places = [TopicPartition(topic, number, shard.offset) for number, shard in shards.items() if shard.offset]
            if places:
                consumer.commit(offsets=places, asynchronous=True)
            stored = start
            busy += time.monotonic() - begin
    consumer.close()
    tell()


if __name__ == "__main__":
    main(*sys.argv[1:])
