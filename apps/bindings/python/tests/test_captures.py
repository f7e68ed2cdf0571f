"""The recorded captures of POLLUX_DATA, against what tshark finds in them."""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pollux

DATA = Path(os.environ.get("POLLUX_DATA") or Path(__file__).resolve().parents[4].parent / "shared/data")
CAPTURES = sorted((DATA / "pcap").glob("*.pcap"))


def tshark(path, defragment):
    """Datagrams by UDP port; with `defragment` those that are in fragments count once, when whole."""
    words = ["tshark", "-o", f"ip.defragment:{str(defragment).upper()}", "-T", "fields", "-r", str(path)]
    fields = ("udp.dstport", "ip.flags.mf", "ip.frag_offset")
    said = subprocess.run([*words, *(word for field in fields for word in ("-e", field))], check=True,
                          capture_output=True, text=True).stdout
    rows = [line.split("\t") for line in said.splitlines()]
    return Counter(int(port) for port, more, offset in rows
                   if port and (defragment or (more not in ("1", "True") and offset in ("0", "")))), len(rows)


@pytest.mark.skipif(not CAPTURES, reason=f"no recorded data at {DATA}")
@pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark: apt-get install tshark")
@pytest.mark.parametrize("reassemble", [False, True])
def test_counts_equal_those_of_tshark(reassemble):
    for path in CAPTURES:
        expected, frames = tshark(path, reassemble)
        found = Counter()
        with pollux.open(f"pcap:rx={path}", reassemble=reassemble) as port:
            for batch in port:
                found.update(np.asarray(batch.dst_port).tolist())
        ledger = port.ledger()
        assert found == expected, path
        assert ledger["from_wire"] == frames and ledger["balanced"], (path, ledger)
