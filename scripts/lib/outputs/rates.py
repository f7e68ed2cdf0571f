"""The rate of confluent-kafka: messages with the bytes of a file that the broker acknowledges in a time, and the seconds.

usage: rates.py BROKER TOPIC SECONDS FILE
"""

import sys
import time

from confluent_kafka import Producer

# As apps/common/kafka/src/producer.rs has them.
PROPERTIES = {"enable.idempotence": True, "message.timeout.ms": 0, "queue.buffering.max.messages": 0,
              "queue.buffering.max.kbytes": 65536, "linger.ms": 50}


def main(broker, topic, seconds, file):
    with open(file, "rb") as stream:
        payload = stream.read()
    delivered = 0

    def acknowledged(error, _):
        nonlocal delivered
        assert error is None, error
        delivered += 1

    producer = Producer({"bootstrap.servers": broker, **PROPERTIES})
    # Connected.
    producer.produce(topic, payload, partition=0, on_delivery=acknowledged)
    producer.flush(60)
    start = time.monotonic()
    while time.monotonic() - start < float(seconds):
        try:
            producer.produce(topic, payload, partition=0, on_delivery=acknowledged)
            producer.poll(0)
        except BufferError:
            producer.poll(0.001)
    print(delivered - 1, time.monotonic() - start)
    producer.flush(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
