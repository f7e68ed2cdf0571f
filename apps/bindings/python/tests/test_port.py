"""Ports, batches and views."""

import gc
import struct
import threading

import numpy as np
import pytest

import pollux
from frames import udp, write

FIRST = 1_700_000_000_000_000_000


def numbered(count, **ports):
    return [udp(struct.pack("<QI", n * 3, n), **ports) for n in range(count)]


def capture(tmp_path, frames, name="a.pcap"):
    return f"pcap:rx={write(tmp_path / name, frames)}"


def test_columns_and_fields_are_those_of_the_frames(tmp_path):
    frames = [udp(struct.pack("<QI", n * 3, n), src_port=1000 + n, dst_port=7502 + n % 2) for n in range(600)]
    seen = []
    with pollux.open(capture(tmp_path, frames)) as port:
        for batch in port:
            assert 0 < len(batch) <= 256
            columns = batch.src_port, batch.dst_port, batch.length, batch.wire_ns, batch.field(0, "<u8")
            seen.append([np.asarray(column) for column in columns])
            assert np.all(np.diff(batch.arrival_ns) >= 0)
            assert [bytes(payload[8:]) for payload in batch] == [struct.pack("<I", n) for n in batch.field(8, "<u4")]
    src, dst, length, wire, values = (np.concatenate(column) for column in zip(*seen))
    n = np.arange(600)
    assert (src == 1000 + n).all() and (dst == 7502 + n % 2).all() and (length == 12).all()
    assert (wire == FIRST + 1000 * n).all() and (values == 3 * n).all()
    assert [column.dtype for column in seen[0]] == ["u2", "u2", "u4", "i8", "u8"]
    assert port.ledger() == {"from_wire": 600, "delivered": 600, "dropped": {}, "balanced": True,
                             "sent": {"packets": 0, "bytes": 0, "errors": 0}}


def test_other_ports_miss_and_long_frames_are_oversize(tmp_path):
    frames = numbered(4) + numbered(3, dst_port=9) + [udp(bytes(300))]
    with pollux.open(capture(tmp_path, frames), streams=[7502], data_room=256) as port:
        assert sum(len(batch) for batch in port) == 4
    ledger = port.ledger()
    assert ledger["dropped"] == {"demux-miss": 3, "oversize": 1} and ledger["balanced"]


def test_streams_are_any_iterable(tmp_path):
    spec = capture(tmp_path, numbered(4) + numbered(3, dst_port=9) + numbered(2, dst_port=11))
    for streams in ([7502, 9], (9, 7502), {7502, 9}, (port for port in (7502, 9)), {9: "", 7502: ""}, range(9, 7503, 7493),
                    np.array([7502, 9], np.uint16)):
        with pollux.open(spec, streams=streams) as port:
            assert sum(len(batch) for batch in port) == 7
        assert port.ledger()["dropped"] == {"demux-miss": 2}
    for streams in (7502, "7502", [7502, "9"], [9.5]):
        with pytest.raises(TypeError):
            pollux.open(spec, streams=streams)
    with pytest.raises(pollux.SpecError, match="65536 is no UDP port"):
        pollux.open(spec, streams=(port for port in (7, 65536)))
    with pytest.raises(ZeroDivisionError):
        pollux.open(spec, streams=(1 // port for port in (1, 0)))


@pytest.mark.parametrize("options", [{"burst": 1024}, {"burst": 32, "buffers": 64}], ids=str)
def test_a_loop_over_batches_does_not_wait_for_the_last_one(tmp_path, options):
    count = 0
    with pollux.open(capture(tmp_path, numbered(5000)), **options) as port:
        # Instead of a test that never ends.
        timer = threading.Timer(60, port.stop)
        timer.start()
        for batch in port:
            count += len(batch)
        timer.cancel()
    assert count == 5000


def test_a_view_is_read_only_keeps_its_buffer_and_outlives_the_port(tmp_path):
    with pollux.open(capture(tmp_path, numbered(40)), buffers=128, burst=64, data_room=2048) as port:
        free = port.free_buffers
        batch = next(port)
        assert port.free_buffers == free - 40
        view = batch[7]
        with pytest.raises(ValueError):
            view[0] = 1
        with pytest.raises(ValueError):
            view.flags.writeable = True
        assert not view.flags.owndata and view.dtype == "u1"
        del batch
        gc.collect()
        assert port.free_buffers == free - 1
        assert bytes(view) == struct.pack("<QI", 21, 7)
        last = view[8:]
        del view
        assert port.free_buffers == free - 1
    del port
    gc.collect()
    assert bytes(last) == struct.pack("<I", 7)


def test_fields_of_any_type(tmp_path):
    with pollux.open(capture(tmp_path, numbered(3))) as port:
        batch = next(port)
        assert batch.field(8, ">u4").tolist() == [n << 24 for n in range(3)]
        both = batch.field(0, [("a", "<u8"), ("b", "<u4")])
        assert both["a"].tolist() == [0, 3, 6] and both["b"].tolist() == [0, 1, 2]
        assert batch.field(0, "S2").tolist() == [b"", b"\3", b"\6"]
        assert batch.field(11, np.uint8).tolist() == [0, 0, 0]
        for dtype in ("O", "S", "nonsense"):
            with pytest.raises(TypeError):
                batch.field(0, dtype)
        with pytest.raises(TypeError, match="field: None has no fixed size in bytes"):
            batch.field(0, None)


def test_a_field_past_a_payload_names_the_datagram(tmp_path):
    frames = [udp(bytes(12)), udp(bytes(12)), udp(bytes(9))]
    with pollux.open(capture(tmp_path, frames)) as port:
        batch = next(port)
        assert batch.field(1, "<u8").tolist() == [0, 0, 0]
        with pytest.raises(IndexError, match=r"8 B at offset 2 are past the payload of datagram 2, which has 9 B"):
            batch.field(2, "<u8")
        for offset in (-1, 1 << 62, (1 << 63) - 1):
            with pytest.raises(IndexError):
                batch.field(offset, "<u8")
        assert len(batch[-1]) == 9
        for index in (3, -4):
            with pytest.raises(IndexError, match=f"datagram {index} of a batch of 3"):
                batch[index]


def test_frames_are_sent(tmp_path):
    out = tmp_path / "out.pcapng"
    frames = numbered(100)
    with pollux.open(f"pcap:tx={out}") as port:
        assert port.send(frames) == 100
        assert port.send(np.frombuffer(b"".join(frames[:7]), np.uint8).reshape(7, -1)) == 7
        assert port.send(iter([bytearray(frames[0]), np.frombuffer(frames[1], np.uint8)])) == 2
        assert port.send([]) == 0
        assert port.ended and list(port) == []
    assert port.ledger()["sent"] == {"packets": 109, "bytes": sum(map(len, frames)) + 9 * len(frames[0]), "errors": 0}
    with pollux.open(f"pcap:rx={out}") as back:
        numbers = np.concatenate([batch.field(8, "<u4") for batch in back])
    assert numbers.tolist() == [*range(100), *range(7), 0, 1]


def test_a_full_ring_takes_the_first_frames():
    with pollux.open("loopback", data_room=2048) as port:
        sent = port.send(numbered(3000))
        assert 0 < sent < 3000
        received = []
        while (batch := port.poll()) is not None:
            received += batch.field(8, "<u4").tolist()
        assert received == list(range(sent))
        assert port.free_buffers + len(batch or ()) <= 8192


def test_wrong_frames_are_refused_before_any_is_sent():
    with pollux.open("loopback", data_room=2048) as port:
        good = udp(b"12345678")
        with pytest.raises(ValueError, match="frame 1 has 13 B"):
            port.send([good, good[:13]])
        with pytest.raises(ValueError, match="frame 0 has 2049 B"):
            port.send([bytes(2049)])
        with pytest.raises(TypeError, match="frame 1 is of type"):
            port.send([good, 7])
        with pytest.raises(TypeError, match="put it into a list"):
            port.send(good)
        with pytest.raises(ValueError, match="contiguous"):
            port.send(np.zeros((4, 100), np.uint8)[:, ::2])
        assert port.ledger()["sent"]["packets"] == 0
    with pollux.open("null") as port:
        assert port.send([good]) == 1
