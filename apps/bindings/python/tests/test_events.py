"""Event files and recordings, by the formats' own pages."""

import struct

import numpy as np
import pytest

import pollux

# The worked example of docs/formats/event-record.md.
EXAMPLE = bytes.fromhex("38FFC1B01E")


def header(version=1, size=64, magic=b"PXEVENTS"):
    return struct.pack("<8sIII44x", magic, version, size, 0)


def record(timestamp, rings, sequence, burst=0):
    payload = b"".join(rings).ljust(40, b"\0")
    return struct.pack("<HBBBBHQ40sIHBB", 30, len(rings), 3, 1, burst & 0xFF, 2, timestamp, payload, sequence, 0x3F,
                       0x80, burst >> 8 << 1)


def test_records_are_those_of_the_format(tmp_path):
    assert pollux.L0_EVENT.itemsize == 64
    file = tmp_path / "a.events"
    file.write_bytes(header(2) + record(1 << 40, [EXAMPLE], 0, 0x1234) + record(7, [], 1) + record(8, [EXAMPLE] * 8, 2))
    events = pollux.read_events(file)
    assert events.dtype == pollux.L0_EVENT and not events.flags.writeable
    assert events["timestamp"].tolist() == [1 << 40, 7, 8] and events["sequence"].tolist() == [0, 1, 2]
    assert events["sources"].tolist() == [0x3F] * 3 and events["kind"].tolist() == [0x80] * 3
    # As docs/python.md has it.
    burst = events["burst_low"] + 256 * (events["burst_high"].astype(int) >> 1)
    assert burst.tolist() == [0x1234, 0, 0]
    rings = pollux.rings(events)
    assert rings["event"].tolist() == [0] + [2] * 8
    assert rings[0].item() == (0, 0, -50.0, 15.75, 176.75, 15)
    # One event, all bits.
    last = pollux.rings(np.frombuffer(record(0, [b"\xff" * 5], 0), pollux.L0_EVENT)[0])
    assert last.item() == (0, 1, -0.25, -0.25, 255.75, 127)
    file.write_bytes(header())
    assert len(pollux.read_events(file)) == 0 == len(pollux.rings(pollux.read_events(file)))


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "a.events"
    for content, said in ((b"", "no event file"), (header(magic=b"PCEVENTS"), "no event file"),
                          (header(3), "version 3"), (header(1, 32), "32 B"), (header() + bytes(65), "1 B follow")):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=said):
            pollux.read_events(file)
    with pytest.raises(FileNotFoundError):
        pollux.read_events(tmp_path / "none")


def test_a_recording_is_read(tmp_path):
    h5py = pytest.importorskip("h5py", reason="no h5py: pip install h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["pollux_version"] = np.uint32(3)
        for name, values in (("events/timestamp", np.arange(3, dtype="u8")), ("events/hit_count", np.full(2, 5, "u2")),
                             ("hits/event_id", np.arange(10, dtype="u2")), ("hits/event_index", np.arange(3)),
                             ("rings/x", np.ones(1, "f4")), ("configuration/data", b"[memory]")):
            file[f"entry/{name}"] = values
    recording = pollux.read_recording(path)
    assert recording.events.tolist() == [(5, 0), (5, 1)] and recording.events.dtype.names == ("hit_count", "timestamp")
    assert recording.hits["event_id"].tolist() == list(range(10)) and recording.rings["x"].tolist() == [1]
    assert (recording.configuration, recording.complete) == ("[memory]", False)
    with h5py.File(path, "a") as file:
        file["entry/events"].attrs["events_written"] = np.uint64(1)
    assert pollux.read_recording(path).events.tolist() == [(5, 0)]
    with h5py.File(path, "w"):
        pass
    with pytest.raises(ValueError, match="no recording"):
        pollux.read_recording(path)
