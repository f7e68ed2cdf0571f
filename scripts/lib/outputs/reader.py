"""Reads topics, and judges what is in them by the messages' own library. Runs in the environment of outputs.

usage: reader.py replay BROKER TOPIC MONITOR RUNS REPORT [RECORDING]   (ev44, da00, pl72, 6s4t)
       reader.py records BROKER TOPIC EVENTS                           (records, and the event file)
       reader.py count BROKER TOPIC                                    (ev44; prints a JSON object)
       reader.py hitmap RECORDING                                      (of accepted events; prints a JSON array)
       reader.py create BROKER TOPIC PARTITIONS
"""

import json
import sys

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from streaming_data_types import deserialise_6s4t, deserialise_da00, deserialise_ev44, deserialise_pl72

# Seconds without a message; and behind the end of a partition, as tansu may give an end before the last messages
# of a batch.
PATIENCE, BEHIND = 20, 1


def messages(broker, topic, partition=0):
    """All messages that are in a partition now."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "judge", "enable.auto.commit": False})
    place = TopicPartition(topic, partition, OFFSET_BEGINNING)
    _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE)
    consumer.assign([place])
    found, last = [], -1
    while True:
        message = consumer.poll(PATIENCE if last < end - 1 else BEHIND)
        if message is None:
            break
        assert not message.error(), message.error()
        found.append(message.value())
        last = message.offset()
    assert last >= end - 1, f"{topic}: {len(found)} messages of {end}"
    consumer.close()
    return found


def events(broker, topic):
    """The times, hits and photomultipliers of all events, in order: each an array by event."""
    times, hits = [], []
    for number, message in enumerate(map(deserialise_ev44, messages(broker, topic))):
        assert message.message_id == number, f"message {message.message_id} is number {number}"
        assert message.source_name == "rich", message.source_name
        assert len(message.reference_time) == len(message.reference_time_index)
        begins = message.reference_time_index
        pairs = np.column_stack([message.time_of_flight, message.pixel_id])
        assert begins[0] == 0 and (np.diff(begins) >= 0).all() and begins[-1] <= len(pairs)
        times.extend(message.reference_time.tolist())
        hits.extend(np.split(pairs, begins[1:]))
    return times, hits


def replay(broker, topic, monitor, runs, report, recording=None):
    with open(report, encoding="utf8") as file:
        report = json.load(file)
    times, hits = events(broker, topic)
    accepted = report["events"]["accepted"]
    assert len(times) == accepted, f"{len(times)} events of {accepted}"
    output = report["outputs"][0]
    assert output["delivered"] == output["handed"] == accepted and output["balanced"], output
    sizes = [len(message) for message in messages(broker, topic)]
    assert (len(sizes), sum(sizes)) == (output["messages"], output["bytes"]), output
    if recording:
        import h5py
        with h5py.File(recording) as file:
            entry = file["entry"]
            is_accepted = entry["events/flags"][:] & 1 == 1
            stamps = entry["events/timestamp"][:][is_accepted]
            assert times == (stamps * 25).tolist(), "the times are not those of the recording"
            ids, offsets = entry["hits/event_id"][:], entry["hits/event_time_offset"][:]
            rows = zip(entry["events/hit_index"][:][is_accepted], entry["events/hit_count"][:][is_accepted], hits)
            for first, count, found in rows:
                own = slice(int(first), int(first) + int(count))
                expected = np.column_stack([np.floor(offsets[own]).astype(int), ids[own]])
                assert np.array_equal(found, expected), f"hits {own} are not those of the recording"
    last = [deserialise_da00(message) for message in messages(broker, monitor)][-1]
    values = {variable.name: variable for variable in last.data}
    hitmap = np.bincount(np.concatenate(hits)[:, 1], minlength=1952)
    assert np.array_equal(values["hitmap"].data, hitmap), "the hit map is not that of the events"
    assert (values["events"].data, values["accepted"].data) == (report["events"]["built"], accepted), values
    for stage, quantiles in report["latency_ns"].items():
        expected = [quantiles[name] for name in ("p50", "p99", "p999", "p9999", "max")]
        assert values[f"latency_{stage}"].data.tolist() == expected, (stage, values[f"latency_{stage}"].data, expected)
    start, stop = messages(broker, runs)
    start, stop = deserialise_pl72(start), deserialise_6s4t(stop)
    assert (start.job_id, start.run_name) == (stop.job_id, stop.run_name), (start, stop)
    assert start.run_name == "42" and json.loads(start.metadata)["run"] == 42, start
    assert 0 < start.start_time <= stop.stop_time, (start, stop)
    stream = json.loads(start.nexus_structure)["children"][0]["children"][0]["children"][0]
    assert stream == {"module": "ev44", "config": {"topic": topic, "source": "rich"}}, stream
    print(f"{accepted} events, {len(np.concatenate(hits))} hits, {len(sizes)} messages")


def records(broker, topic, file):
    with open(file, "rb") as stream:
        expected = stream.read()[64:]
    found = b"".join(messages(broker, topic))
    assert found == expected, f"{len(found)} B of records, {len(expected)} B in the event file"
    print(f"{len(found) // 64} records")


def count(broker, topic):
    times = [time for message in messages(broker, topic) for time in deserialise_ev44(message).reference_time.tolist()]
    print(json.dumps({"events": len(times), "once": len(set(times)) == len(times), "ordered": times == sorted(times)}))


def create(broker, topic, partitions):
    client = AdminClient({"bootstrap.servers": broker})
    for created in client.create_topics([NewTopic(topic, num_partitions=int(partitions))]).values():
        try:
            created.result()
        except KafkaException as error:
            # A producer that waits may have had the broker make it.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def hitmap(recording):
    import h5py
    with h5py.File(recording) as file:
        entry = file["entry"]
        is_accepted = entry["events/flags"][:] & 1 == 1
        first, count = (entry[f"events/{name}"][:].astype(int)[is_accepted] for name in ("hit_index", "hit_count"))
        ids = entry["hits/event_id"][:]
    # Ones from the first hit of each accepted event to its last.
    steps = np.zeros(len(ids) + 1, int)
    np.add.at(steps, first, 1)
    np.add.at(steps, first + count, -1)
    print(json.dumps(np.bincount(ids[np.cumsum(steps)[:-1] > 0], minlength=1952).tolist()))


if __name__ == "__main__":
    {"replay": replay, "records": records, "count": count, "hitmap": hitmap, "create": create}[sys.argv[1]](*sys.argv[2:])
