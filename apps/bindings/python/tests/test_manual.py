"""The programs of docs/python.md run as printed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from frames import udp, write

BIN = os.environ.get("POLLUX_BIN")
MANUAL = Path(__file__).resolve().parents[4] / "docs/python.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", MANUAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_a_program_of_the_manual(program, tmp_path, monkeypatch, capsys):
    if "pollux.l0(" in program:
        if not BIN:
            pytest.skip("no programs: POLLUX_BIN is their folder")
        boards = [Path(BIN, "pollux-emulator"), "--port", f"pcap:tx={tmp_path / 'run.pcapng'}", "--events", "100"]
        subprocess.run(boards, check=True, capture_output=True)
    else:
        write(tmp_path / "run.pcapng", [udp(bytes(20), dst_port=port) for port in (7502, 7503, 7504)])
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "docs/python.md", "exec"), {})
    said = capsys.readouterr().out
    assert re.search(r"'balanced': True|not-for-us|^[1-9]\d* accepted$|loopback", said, re.MULTILINE)
