"""Events of the L0 trigger: event files and recordings (docs/formats)."""

from typing import NamedTuple

import numpy as np

# docs/formats/event-record.md, L0 event. Bit 7 of `burst_high` is 0; its bits 6 to 1 are bits 13 to 8 of the burst.
L0_EVENT = np.dtype({
    "names": ["hits", "ring_count", "flags", "rules", "burst_low", "rule_set", "timestamp", "rings", "sequence",
              "sources", "kind", "burst_high"],
    "formats": ["<u2", "u1", "u1", "u1", "u1", "<u2", "<u8", ("u1", (8, 5)), "<u4", "<u2", "u1", "u1"],
    "offsets": [0, 2, 3, 4, 5, 6, 8, 16, 56, 60, 62, 63],
    "itemsize": 64,
})

RING = np.dtype([("event", "<i8"), ("disk", "u1"), ("x", "<f4"), ("y", "<f4"), ("r", "<f4"), ("hits", "u1")])

MAGIC, RECORD = b"PXEVENTS", 64


def read_events(path):
    """Maps an event file of `l0-trigger --events-out`: an array of L0_EVENT, which is read when it is used."""
    header = np.fromfile(path, np.uint8, RECORD)
    if len(header) < RECORD or header[:8].tobytes() != MAGIC:
        raise ValueError(f"{path}: no event file: it does not begin with PXEVENTS; `l0-trigger --events-out` writes one")
    version, size = header[8:16].view("<u4")
    if version not in (1, 2) or size != RECORD:
        raise ValueError(f"{path}: version {version} with records of {size} B, where 1 or 2 with 64 B are read: "
                         "update this package")
    events = np.memmap(path, np.uint8, "r")[RECORD:]
    if len(events) % RECORD:
        raise ValueError(f"{path}: truncated: {len(events) % RECORD} B follow the last whole record; the program that "
                         "wrote it has reported why")
    return events.view(L0_EVENT)


def rings(events):
    """The rings of events, one item each: its event (the index in `events`), disk, centre and radius in mm, and hits
    (127 for more)."""
    events = np.atleast_1d(events)
    packed = np.zeros((len(events), 8, 8), np.uint8)
    packed[:, :, :5] = events["rings"]
    used = np.arange(8) < np.minimum(events["ring_count"], 8)[:, None]
    bits = packed.view("<u8")[:, :, 0][used].astype(np.int64)
    found = np.empty(len(bits), RING)
    found["event"] = np.nonzero(used)[0]
    # Signed numbers of 11 bits, in units of 0.25 mm.
    for name, shift in (("x", 0), ("y", 11)):
        found[name] = (((bits >> shift & 0x7FF) ^ 0x400) - 0x400) * 0.25
    found["r"] = (bits >> 22 & 0x3FF) * 0.25
    found["disk"], found["hits"] = bits >> 32 & 1, bits >> 33 & 0x7F
    return found


class Recording(NamedTuple):
    """A recording of `l0-trigger --record` (docs/formats/recording.md): arrays with a field for each column."""

    events: np.ndarray
    hits: np.ndarray
    rings: np.ndarray
    configuration: str
    complete: bool


def read_recording(path):
    """Reads a recording in HDF5. Needs h5py: pip install "pollux[hdf5]"."""
    try:
        import h5py  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise ImportError('recordings are read by h5py: pip install "pollux[hdf5]"') from error
    with h5py.File(path) as file:
        entry = file.get("entry")
        if "pollux_version" not in file.attrs or entry is None:
            raise ValueError(f"{path}: no recording: it lacks the attribute pollux_version; `l0-trigger --record` "
                             "writes one")
        tables = []
        for group in ("events", "hits", "rings"):
            # Events are extended last, and their columns one after another.
            columns = {name: data for name, data in entry[group].items()
                       if data.ndim == 1 and name not in ("event_time_zero", "event_index")}
            rows = min((len(data) for data in columns.values()), default=0)
            # A disk that fails leaves columns with items that were never written.
            if group == "events":
                rows = min(rows, int(entry[group].attrs.get("events_written", rows)))
            table = np.empty(rows, [(name, data.dtype) for name, data in columns.items()])
            for name, data in columns.items():
                table[name] = data[:rows]
            tables.append(table)
        configuration = entry["configuration/data"][()]
        return Recording(*tables, configuration.decode(), "end_time" in entry)
