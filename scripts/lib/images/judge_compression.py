"""Compressed images, judged by others' software: CSR by SciPy, bitshuffle and LZ4 by the reference
library and, as chunks of an HDF5 file, by h5py with hdf5plugin.

    judge_compression.py FOLDER COMMAND...

writes images to FOLDER, runs COMMAND FOLDER (`cargo run --release -p pollux-images --example
compress_files`), and compares what it writes. The frames of a JUNGFRAU module are among the images
where there are any (POLLUX_DATA). Needs numpy, scipy, bitshuffle, h5py and hdf5plugin from PyPI.
"""

import os
import struct
import subprocess
import sys
from pathlib import Path

import bitshuffle
import h5py
import hdf5plugin
import numpy as np
import scipy.sparse

ROOT = Path(__file__).resolve().parents[3]
THRESHOLD = 2
TYPES = {"i16": ("<i2", 1), "i32": ("<i4", 2), "f32": ("<f4", 3)}


def codes(dtype):
    """Codes of a bad and of a saturated pixel."""
    if dtype.kind == "f":
        return np.nan, np.inf
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def images():
    """Names, and images of all types, shapes that fit no vector, and occupancies up to dense ones."""
    rng = np.random.default_rng(19)
    for rows, columns in [(512, 1024), (256, 512), (400, 400), (514, 1030), (3, 67), (1, 5), (40, 1)]:
        for occupancy in (0, 0.001, 0.01, 0.1, 0.4, 0.9):
            photons = np.where(rng.random((rows, columns)) < occupancy, rng.exponential(90, (rows, columns)), 0)
            for pixel, (name, _) in TYPES.items():
                image = photons.astype(name)
                for code, n in zip(codes(image.dtype), rng.integers(0, 1 + image.size // 1000, 2)):
                    image.flat[rng.integers(0, image.size, n)] = code
                yield f"synthetic-{occupancy * 1000:.0f}.{pixel}.{rows}x{columns}", image
    data = Path(os.environ.get("POLLUX_DATA", ROOT / "../shared/data"))
    for path in sorted((data / "jungfrau").glob("mod5_conv*.bin")):
        photons = np.fromfile(path, "<f4").reshape(512, 1024)
        yield f"{path.stem}.f32.512x1024", photons
        yield f"{path.stem}.i16.512x1024", np.rint(np.clip(photons, -32767, 32766)).astype("<i2")
        raw = np.fromfile(path.with_name(path.name.replace("conv", "raw")), "<i2").reshape(512, 1024)
        yield f"{path.stem}-raw.i16.512x1024", raw


def read_record(data):
    """docs/formats/sparse-image.md"""
    magic, version, kind, length, zero, number, rows, columns, n, bad = struct.unpack_from("<4sBBBBQIIII", data)
    assert (magic, version, zero, number) == (b"PXSI", 1, 0, 0)
    name = next(name for name, of in TYPES.values() if of == kind)
    at = 40
    arrays = []
    for dtype, count in [("<u4", rows + 1), (f"<u{length}", n)] if length else []:
        arrays.append(np.frombuffer(data, dtype, count, at))
        at += -(-arrays[-1].nbytes // 4) * 4
    arrays.append(np.frombuffer(data, name, n, at))
    at += arrays[-1].nbytes
    assert len(data) == -(-at // 8) * 8, "length of the record"
    return (rows, columns), bad, arrays


def judge_sparse(image, data):
    """Whether the record is the image's."""
    shape, bad, arrays = read_record(data)
    wrong = np.isnan(image) if image.dtype.kind == "f" else image == codes(image.dtype)[0]
    kept = np.where(~wrong & (image >= THRESHOLD), image, image.dtype.type(0))
    csr = scipy.sparse.csr_matrix(kept)
    size = 4 * (shape[0] + 1) + csr.nnz * (2 + image.itemsize)
    assert shape == image.shape and bad == wrong.sum(), "shape and bad pixels"
    if size >= image.nbytes:
        assert len(arrays) == 1 and arrays[0].tobytes() == image.tobytes(), "the dense image"
        return "dense"
    offsets, columns, values = arrays
    assert (offsets == csr.indptr).all() and (columns == csr.indices).all(), "indptr and indices"
    assert values.tobytes() == csr.data.tobytes(), "data"
    return "sparse"


def reference_chunk(image):
    """As the HDF5 filter writes it."""
    return struct.pack(">QI", image.nbytes, 8192) + bitshuffle.compress_lz4(image).tobytes()


def judge_chunk(image, path, folder):
    """Whether the chunk is the image's, in bytes that equal the reference's or not."""
    chunk = path.with_suffix(".bslz4").read_bytes()
    back = bitshuffle.decompress_lz4(np.frombuffer(chunk, "u1")[12:], image.shape, image.dtype)
    assert back.tobytes() == image.tobytes(), "decompressed by the reference"
    assert path.with_suffix(".back").read_bytes() == image.tobytes(), "the reference's, decompressed"
    with h5py.File(folder / "chunk.h5", "w") as file:
        data = file.create_dataset(
            "image", image.shape, image.dtype, chunks=image.shape, **hdf5plugin.Bitshuffle(cname="lz4")
        )
        data.id.write_direct_chunk((0, 0), chunk)
        assert data[()].tobytes() == image.tobytes(), "read by h5py"
    return "equal bytes" if chunk == reference_chunk(image) else "other bytes"


def main():
    folder, command = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for name, image in images():
        path = folder / f"{name}.raw"
        written[path] = image
        path.write_bytes(image.tobytes())
        path.with_suffix(".reference.bslz4").write_bytes(reference_chunk(image))
    subprocess.run([*command, folder], check=True)
    counts, failed = {}, 0
    for path, image in written.items():
        try:
            for result in (
                judge_sparse(image, path.with_suffix(".sparse").read_bytes()),
                judge_chunk(image, path, folder),
            ):
                counts[result] = counts.get(result, 0) + 1
        except AssertionError as error:
            failed += 1
            print(f"{path.name}: {error}")
    print(f"{len(written)} images, {failed} wrong: {counts}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
