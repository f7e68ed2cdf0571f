"""The L0 trigger from Python."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import pollux
from frames import udp, write


BIN = os.environ.get("POLLUX_BIN")


@pytest.mark.skipif(not BIN, reason="no programs: POLLUX_BIN is their folder")
def test_events_are_those_of_the_program(tmp_path):
    def run(program, *words):
        subprocess.run([Path(BIN, program), *map(str, words)], check=True, capture_output=True)

    capture, file = tmp_path / "run.pcapng", tmp_path / "run.events"
    run("pollux-emulator", "--port", f"pcap:tx={capture}", "--events", 20000, "--seed", 7)
    run("l0-trigger", "--run", 1, "--port", f"pcap:rx={capture}", "--events-out", file)
    events = np.concatenate(list(pollux.l0(f"pcap:rx={capture}")))
    assert len(events) == 20000
    assert events.tobytes() == file.read_bytes()[64:]
    assert (pollux.read_events(file) == events).all()
    # An efficient trigger: most of the emulated rings are found (docs/physics.md).
    assert len(pollux.rings(events)) > len(events) / 2


def test_the_run_ends_with_its_recording(tmp_path):
    blocks = list(pollux.l0(f"pcap:rx={write(tmp_path / 'a.pcap', [])}"))
    assert all(block.dtype == pollux.L0_EVENT for block in blocks)
    assert sum(map(len, blocks)) == 0
    # Frames of which none is used are a failure.
    spec = f"pcap:rx={write(tmp_path / 'b.pcap', [udp(bytes(40))] * 10)}"
    with pytest.raises(pollux.PortError, match="no event was built; of 10 frames 10 were"):
        list(pollux.l0(spec))


def test_wrong_requests_and_failures_are_told_apart(tmp_path):
    with pytest.raises(pollux.SpecError, match="no driver `nul`"):
        pollux.l0("nul")
    config = tmp_path / "a.toml"
    config.write_text("[memory]\nbuffers = 0\n")
    with pytest.raises(pollux.SpecError, match="buffers"):
        pollux.l0("null", config)
    with pytest.raises(pollux.PortError, match="/nowhere"):
        list(pollux.l0("pcap:rx=/nowhere/a.pcap"))


def test_a_run_ends_when_its_events_are_left(tmp_path):
    spec = f"pcap:rx={write(tmp_path / 'a.pcap', [udp(bytes(40))])},loop=0"
    run = pollux.l0(spec)
    run.close()
    assert list(run) == []
