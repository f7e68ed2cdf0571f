"""The peers in Python of scripts/compare-images: pyFAI, and the reference library of bitshuffle, on one thread.

usage: peer.py FOLDER

The program compare-images has written the input of the rows to FOLDER. At first this prints a line of JSON with the
rows that it has, and why it lacks others. It then reads lines, `ROW SIDE`, and answers each with a line of JSON: a
turn of `peer` is a rate, and `check` compares its results with those that the program has written."""

import json
import logging
import os
import sys
import time
from pathlib import Path

# Before the libraries start their threads.
os.environ.update(OMP_NUM_THREADS="1", NUMEXPR_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYFAI_OPENCL="0")
logging.disable(logging.WARNING)

# Largest difference of an integration, relative to the value of the bin.
TOLERANCE = 1e-4


class Integration:
    """pyFAI's sparse matrix (CSR) for a geometry, without what it does around each integration."""

    def __init__(self, folder, name):
        import numpy
        import pyFAI
        from pyFAI.detectors import Detector
        from pyFAI.integrator.azimuthal import AzimuthalIntegrator

        self._numpy, self._folder, self._name = numpy, folder, name
        request = json.loads(Path(folder, f"{name}.json").read_text(encoding="utf8"))
        geometry, integration, shape = request["geometry"], request["integration"], tuple(request["shape"])
        pixels = geometry.pop("pixel1"), geometry.pop("pixel2")
        integrator = AzimuthalIntegrator(**geometry, detector=Detector(*pixels, max_shape=shape))

        def image(n):
            pixels = numpy.fromfile(Path(folder, f"{name}-{n}.f32"), "<f4").reshape(shape)
            # Bad and saturated pixels do not count.
            return numpy.where(numpy.isfinite(pixels), pixels, numpy.float32("nan"))

        self._images = [image(n) for n in range(request["images"])]
        method = (integration["split"], "csr", "cython")
        integrator.integrate1d_ng(self._images[0], integration["bins"], unit=integration["unit"], method=method,
                                  error_model="poisson")
        engines = [each.engine for each in integrator.engines.values()]
        self._engine = next(engine for engine in engines if hasattr(engine, "integrate_ng"))
        self._solid_angle = integrator.solidAngleArray(shape)
        self._poisson = pyFAI.containers.ErrorModel.POISSON
        self.name = f"pyFAI {pyFAI.version}, CSR in Cython, one thread"

    def _integrate(self, image):
        return self._engine.integrate_ng(image, error_model=self._poisson, solidangle=self._solid_angle)

    def turn(self):
        start = time.perf_counter()
        for image in self._images:
            self._integrate(image)
        return sum(image.size for image in self._images) / (time.perf_counter() - start) / 1e9

    def check(self):
        numpy = self._numpy
        for n, image in enumerate(self._images):
            curve = json.loads(Path(self._folder, f"{self._name}-{n}.curve").read_text(encoding="utf8"))
            result = self._integrate(image)
            fields = {"sum_signal": result.signal, "sum_normalization": result.normalization,
                      "sum_variance": result.variance, "count": result.count, "intensity": result.intensity,
                      "sem": result.sem}
            for field, values in fields.items():
                own, values = numpy.array(curve[field]), numpy.asarray(values, dtype=float)
                largest = numpy.maximum(abs(own), abs(values))
                apart = numpy.divide(abs(own - values), largest, out=numpy.zeros(len(own)), where=largest > 0).max()
                if not apart <= TOLERANCE:
                    raise ValueError(f"image {n}: {field} differs from pyFAI's by {apart:.1e}")


class Bitshuffle:
    """The functions in C of the reference library, into a buffer that is there already."""

    def __init__(self, folder, name):
        import ctypes

        import bitshuffle
        from bitshuffle import ext

        self._folder, self._name = folder, name
        images = Path(folder, f"{name}.images").read_bytes()
        size = 512 * 1024 * 2
        self._images = [ctypes.create_string_buffer(images[at:at + size], size) for at in range(0, len(images), size)]
        library = ctypes.CDLL(ext.__file__)
        self._compress = library.bshuf_compress_lz4
        self._compress.restype = ctypes.c_int64
        self._compress.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_size_t] * 3]
        bound = library.bshuf_compress_lz4_bound
        bound.restype, bound.argtypes = ctypes.c_size_t, [ctypes.c_size_t] * 3
        self._elements = size // 2
        self._out = ctypes.create_string_buffer(bound(self._elements, 2, 0))
        levels = {"AVX-512": ext.using_AVX512(), "AVX2": ext.using_AVX2(), "SSE2": ext.using_SSE2()}
        level = next((level for level, used in levels.items() if used), "no SIMD")
        self.name = f"bitshuffle {bitshuffle.__version__} in C ({level}), one thread"

    def _one(self, image):
        # Blocks of the default size.
        length = self._compress(image, self._out, self._elements, 2, 0)
        if length < 0:
            raise ValueError(f"bshuf_compress_lz4 returned {length}")
        return length

    def turn(self):
        start = time.perf_counter()
        for image in self._images:
            self._one(image)
        return 2 * self._elements * len(self._images) / (time.perf_counter() - start) / 1e9

    def check(self):
        for n, image in enumerate(self._images):
            own = Path(self._folder, f"{self._name}-{n}.bslz4").read_bytes()
            length = self._one(image)
            if own != self._out.raw[:length]:
                raise ValueError(f"image {n} is compressed to other bytes than by the reference library")


ROWS = {"integrate_nosplit": Integration, "integrate_full": Integration, "bitshuffle_lz4": Bitshuffle,
        "bitshuffle_lz4_raw": Bitshuffle}


def answer(what):
    print(json.dumps(what), flush=True)


def main():
    folder, peers, lacking = sys.argv[1], {}, {}
    for name, kind in ROWS.items():
        if Path(folder, f"{name}.json").exists() or Path(folder, f"{name}.images").exists():
            try:
                peers[name] = kind(folder, name)
            except (ImportError, AttributeError) as why:
                lacking[name] = f"no peer: {why}"
    answer({"rows": {name: peer.name for name, peer in peers.items()}, "lacking": lacking})
    for line in sys.stdin:
        name, side = line.split()
        try:
            answer({"rate": peers[name].turn()} if side == "peer" else peers[name].check() or {})
        except ValueError as why:
            answer({"error": str(why)})


if __name__ == "__main__":
    main()
