"""Wrong specs and options, ports that are closed, forked processes, other threads, signals."""

import asyncio
import os
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest

import pollux
from frames import udp, write


def capture(tmp_path, count=40):
    return f"pcap:rx={write(tmp_path / 'a.pcap', [udp(struct.pack('<I', n)) for n in range(count)])}"


@pytest.mark.parametrize("spec, options, said", [
    ("nul", {}, "no driver `nul`; there are: "),
    ("", {}, "names no driver"),
    ("null:size=x", {}, "size"),
    ("pcap:", {}, "pcap needs rx=FILE"),
    ("null", {"streams": [65536]}, "65536 is no UDP port"),
    ("null", {"streams": [-1]}, "-1 is no UDP port"),
    ("null", {"streams": [7, 7]}, "UDP port 7 leads to stream 0 and to stream 1"),
    ("null", {"burst": 0}, "burst = 0: a batch has 1 to 4096"),
    ("null", {"burst": 5000}, "burst = 5000"),
    ("null", {"data_room": 10}, "data room must be at least 64 B"),
    ("null", {"buffers": 0}, "a pool of 0 buffers"),
    ("null", {"buffers": 511}, "burst = 256 with 511 buffers: a batch is kept while the next is received"),
    ("null", {"burst": 33, "buffers": 65}, "give buffers = 66 or more, or a smaller burst"),
])
def test_a_wrong_request_is_a_spec_error(spec, options, said):
    with pytest.raises(pollux.SpecError) as raised:
        pollux.open(spec, **options)
    assert said in str(raised.value)
    assert isinstance(raised.value, ValueError)


def test_a_failure_is_a_port_error(tmp_path):
    for spec in ("pcap:rx=/nowhere/a.pcap", "af_packet:no-such-interface0"):
        with pytest.raises(pollux.PortError) as raised:
            pollux.open(spec)
        assert isinstance(raised.value, OSError)
        assert spec.split(":")[0] in str(raised.value)
    with pytest.raises(TypeError):
        pollux.open(7)
    broken = write(tmp_path / "broken.pcap", [udp(bytes(20))] * 3)
    broken.write_bytes(broken.read_bytes()[:-5])
    with pytest.raises(pollux.PortError, match="broken.pcap"):
        with pollux.open(f"pcap:rx={broken}") as port:
            assert sum(map(len, port)) == 2
    assert port.ledger()["balanced"]


def test_a_field_larger_than_all_payloads_takes_no_memory(tmp_path):
    script = """
import resource, sys
import pollux
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
with pollux.open(sys.argv[1], data_room=2048, buffers=64, burst=32) as port:
    try:
        next(iter(port)).field(0, "S2147483647")
    except IndexError:
        print("refused")
"""
    said = subprocess.run([sys.executable, "-c", script, capture(tmp_path)], capture_output=True, text=True, check=False)
    assert said.stdout == "refused\n", said.stderr


def test_a_batch_after_close_says_so(tmp_path):
    with pollux.open(capture(tmp_path)) as port:
        batch = next(port)
        view = batch[3]
    for use in (lambda: batch.dst_port, lambda: batch.arrival_ns, lambda: batch.field(0, "u1"), lambda: batch[0],
                lambda: next(port), lambda: port.send([]), port.poll):
        with pytest.raises(pollux.PortError, match="is closed: open it again"):
            use()
    assert len(batch) == 40 and bytes(view) == struct.pack("<I", 3)
    port.close()
    assert port.ledger()["delivered"] == 40 and port.ended
    assert "closed" in repr(port) and "40 datagrams" in repr(batch)


def test_stop_ends_an_iteration_on_another_thread():
    with pollux.open("loopback", data_room=2048) as port:
        timer = threading.Timer(0.05, port.stop)
        timer.start()
        assert list(port) == [] and list(port) == []
        timer.join()
        assert port.ended and port.poll() is None


def test_the_interpreter_runs_while_a_port_is_polled():
    with pollux.open("loopback", data_room=2048) as port:
        ticks = []
        def tick():
            for _ in range(5):
                time.sleep(0.01)
                ticks.append(port.ledger()["from_wire"])
            port.stop()
        other = threading.Thread(target=tick)
        other.start()
        assert list(port) == []
        other.join()
        assert ticks == [0] * 5


def test_another_thread_than_the_owner_is_refused():
    with pollux.open("loopback", data_room=2048) as port:
        assert port.poll() is None
        said = []
        def use():
            for call in (port.poll, lambda: next(port), lambda: port.send([])):
                try:
                    call()
                except pollux.PortError as error:
                    said.append(str(error))
        other = threading.Thread(target=use)
        other.start()
        other.join()
        assert len(said) == 3 and all("in use by another thread" in text for text in said)
        assert port.poll() is None


def test_a_port_that_is_polled_is_not_closed_under_the_poll():
    port = pollux.open("loopback", data_room=2048)
    entered = threading.Event()
    def run():
        entered.set()
        list(port)
    other = threading.Thread(target=run)
    other.start()
    entered.wait()
    refused = 0
    while refused == 0:
        try:
            port.close()
            break
        except pollux.PortError as error:
            assert "in use by another thread" in str(error)
            refused += 1
    port.stop()
    other.join()
    port.close()


def test_ctrl_c_interrupts_a_poll():
    with pollux.open("loopback", data_room=2048) as port:
        timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list(port)
        timer.join()
        assert port.poll() is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_can_neither_use_nor_harm_the_port(tmp_path):
    with pollux.open(capture(tmp_path, 400), buffers=512, data_room=2048) as port:
        batch = next(port)
        view, free = batch[0], port.free_buffers
        child = os.fork()
        if child == 0:
            status = 1
            try:
                said = 0
                for use in (port.poll, port.close, lambda: port.free_buffers, lambda: batch.dst_port, lambda: batch[0]):
                    try:
                        use()
                    except pollux.PortError as error:
                        said += "was opened before this process was forked" in str(error)
                batch = view = port = None
                status = 0 if said == 5 else 2
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert port.free_buffers == free and bytes(view) == struct.pack("<I", 0)
        batch = None
        assert port.free_buffers == 511
        assert sum(map(len, port)) == 400 - 256
    assert port.ledger()["balanced"]


def test_async_iteration_leaves_time_to_others(tmp_path):
    async def count():
        with pollux.open(capture(tmp_path, 600), burst=32) as port:
            return sum([len(batch) async for batch in port])

    async def wait():
        with pollux.open("loopback", data_room=2048) as port:
            asyncio.get_running_loop().call_later(0.05, port.stop)
            return [batch async for batch in port]

    async def both():
        return await asyncio.gather(count(), count(), wait())

    assert asyncio.run(both()) == [600, 600, []]
