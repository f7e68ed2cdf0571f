#!/usr/bin/env python3
"""Compares azimuthal integrations with those of pyFAI: results, and speed on one core.

usage: judge_integrate.py PROGRAM [--data FOLDER] [--speed] [--core N]

PROGRAM is the example `integrate` of pollux-images, compiled for release. Needs numpy and pyFAI. FOLDER has frames of
512 x 1024 pixels, `mod5_conv*.bin`. Results are compared with pyFAI's CSR in Cython; they must agree to 1e-4, relative
to the value of the bin. One bin differs on purpose: without splitting and with a radial range, pyFAI's compiled
implementations count pixels for the first bin that are up to the width of a bin before it; that bin is compared
with pyFAI's implementation in numpy. --speed prints Mpixel/s of both sides by turns, and their ratio.
"""

import argparse
import functools
import itertools
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Before the libraries start their threads.
os.environ.update(OMP_NUM_THREADS="1", NUMEXPR_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYFAI_OPENCL="0")
logging.disable(logging.WARNING)

import numpy
import pyFAI
from pyFAI.detectors import Detector
from pyFAI.integrator.azimuthal import AzimuthalIntegrator

MODULE = (512, 1024)
TOLERANCE = 1e-4
WAVELENGTH = 1e-10
UNITS = ["q_nm^-1", "q_A^-1", "2th_rad", "2th_deg", "r_mm"]
# Distance, PONI and rotations: beam inside, outside, in a corner, and in the middle of a pixel; tilted and not.
GEOMETRIES = {
    "inside": (0.1, 0.02, 0.03, 0, 0, 0),
    "outside": (0.1, -0.01, -0.015, 0, 0, 0),
    "corner": (0.15, 0, 0, 0, 0, 0),
    "pixel": (0.12, 255.5 * 75e-6, 512.5 * 75e-6, 0, 0, 0),
    "turned": (0.1, 0.0193, 0.0381, 0, 0, 0.785),
    "tilted": (0.1, 0.02, 0.03, 0.1, -0.05, 0.3),
    "tilted outside": (0.08, -0.01, 0.04, -0.3, 0.25, -2.5),
    "backward": (0.05, 0.02, 0.03, 2.0, 0.3, 1.57),
}
# Names in a result of pyFAI and ours.
SUMS = {"sum_signal": "signal", "sum_normalization": "normalisation", "sum_variance": "variance", "count": "count",
        "intensity": "mean", "sem": "sigma"}


def geometry(values):
    names = ["dist", "poni1", "poni2", "rot1", "rot2", "rot3"]
    return dict(zip(names, values), pixel1=75e-6, pixel2=75e-6, wavelength=WAVELENGTH)


@functools.lru_cache(maxsize=1)
def peer(values, shape):
    """pyFAI's integrator for a geometry, which keeps what it computes of it for the next case."""
    return AzimuthalIntegrator(*values, detector=Detector(75e-6, 75e-6, max_shape=shape), wavelength=WAVELENGTH)


def ours(program, folder, values, image, mask=None, variance=None, rounds=0, pixel="f32", core=None, **integration):
    """Our result."""
    request = {"rows": image.shape[0], "columns": image.shape[1], "geometry": geometry(values), "rounds": rounds,
               "integration": integration, "image": f"{folder}/image", "pixel": pixel}
    image.astype("<f4").tofile(request["image"])
    if mask is not None:
        request["mask"] = f"{folder}/mask"
        mask.astype("u1").tofile(request["mask"])
    if variance is not None:
        request["variance"] = f"{folder}/variance"
        variance.astype("<f4").tofile(request["variance"])
    file = Path(folder, "request.json")
    file.write_text(json.dumps(request), encoding="utf8")
    on_core = [] if core is None else ["taskset", "-c", str(core)]
    done = subprocess.run([*on_core, program, file], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return {name: numpy.array(value) for name, value in json.loads(done.stdout).items()}


def distance(a, b):
    """Largest difference relative to the value."""
    largest = numpy.maximum(abs(a), abs(b))
    return numpy.divide(abs(a - b), largest, out=numpy.zeros(len(a)), where=largest > 0)


def compare(program, folder, values, image, split, unit, bins, limits=None, mask=None, variance=None,
            solid_angle=True, polarisation=None, pixel="f32"):
    """The largest relative difference, and what has it."""
    options = {"unit": unit, "bins": bins, "split": split, "range": limits, "solid_angle": solid_angle,
               "polarisation": polarisation}
    found = ours(program, folder, values, image, mask, variance, pixel=pixel, **options)
    integrator = peer(values, image.shape)

    def expected(method):
        clean = numpy.where(numpy.isfinite(image), image, numpy.nan).astype(numpy.float32)
        return integrator.integrate1d_ng(
            clean, bins, unit=unit, method=method, radial_range=limits, mask=mask, variance=variance,
            error_model=None if variance is not None else "poisson", correctSolidAngle=solid_angle,
            polarization_factor=polarisation)

    result = expected((split, "csr", "cython"))
    numpys = expected(("no", "histogram", "python")) if split == "no" and limits else None
    worst = (distance(found["radial"], result.radial).max(), "radial", 0)
    for name, own in SUMS.items():
        values = numpy.array(getattr(result, name), dtype=float)
        if numpys is not None:
            values[0] = getattr(numpys, name)[0]
        apart = distance(found[own], values)
        worst = max(worst, (apart.max(), own, int(apart.argmax())))
    return worst


def cases(frames):
    """Arguments of `compare`."""
    random = numpy.random.default_rng(20)
    poisson = random.poisson(10, MODULE).astype(numpy.float32)
    for (name, values), split, unit in itertools.product(GEOMETRIES.items(), ["no", "full"], UNITS):
        yield f"{name}, {split}, {unit}", (values, poisson, split, unit, 1000), {}
    holes = poisson.copy()
    holes[random.random(MODULE) < 0.01] = numpy.nan
    holes[random.random(MODULE) < 0.01] = numpy.inf
    mask = random.random(MODULE) < 0.1
    variance = random.exponential(20, MODULE).astype(numpy.float32)
    for name, values in GEOMETRIES.items():
        for split in ["no", "full"]:
            # Some pixels are below, more above. A quantile may be a pixel, whose bin is then a matter of rounding.
            array = peer(values, MODULE).array_from_unit(MODULE, "center", "2th_deg")
            low, high = (float(value) + 1e-5 for value in numpy.quantile(array, [0.1, 0.8]))
            first = (values, poisson, split, "2th_deg")
            # pyFAI's numpy has no minimum of the variance.
            one = (values, numpy.maximum(poisson, 1), split, "2th_deg", 300)
            yield f"{name}, {split}, range", one, {"limits": (low, high)}
            yield f"{name}, {split}, beyond", (*first, 200), {"limits": (0, 200)}
            yield f"{name}, {split}, mask", (*first, 500), {"mask": mask}
            yield f"{name}, {split}, variance", (*first, 500), {"variance": variance}
            yield f"{name}, {split}, polarisation", (*first, 500), {"polarisation": 0.99}
            yield f"{name}, {split}, no solid angle", (*first, 500), {"solid_angle": False}
            yield f"{name}, {split}, few bins", (*first, 3), {}
            yield f"{name}, {split}, many bins", (*first, 4000), {}
            yield f"{name}, {split}, bad pixels", (values, holes, split, "2th_deg", 500), {}
            yield f"{name}, {split}, i16", (*first, 500), {"pixel": "i16"}
            yield f"{name}, {split}, i32", (*first, 500), {"pixel": "i32"}
            for frame in frames:
                image = numpy.fromfile(frame, "<f4").reshape(MODULE)
                yield f"{name}, {split}, {frame.name}", (values, image, split, "q_nm^-1", 1000), {}
    for shape in [(1, 1), (1, 7), (37, 53), (1025, 3)]:
        image = random.poisson(10, shape).astype(numpy.float32)
        for split in ["no", "full"]:
            yield f"{shape}, {split}", (GEOMETRIES["tilted"], image, split, "2th_deg", 20), {}


def judge(program, data):
    """Compares all cases; returns errors."""
    frames = sorted(Path(data).glob("mod5_conv*.bin")) if data else []
    errors, number, largest = [], 0, (0, "")
    with tempfile.TemporaryDirectory() as folder:
        for name, positional, named in cases(frames):
            apart, what, where = compare(program, folder, *positional, **named)
            number += 1
            largest = max(largest, (apart, f"{name}: {what} of bin {where}"))
            if not apart <= TOLERANCE:
                errors.append(f"{name}: {what} of bin {where} differs by {apart:.1e}")
    print(f"{number} integrations compared with pyFAI {pyFAI.version}, {len(errors)} differ; "
          f"largest difference {largest[0]:.1e} ({largest[1]})")
    return errors


def speed(program, core, rounds=5):
    """Prints Mpixel/s of both sides."""
    random = numpy.random.default_rng(20)
    os.sched_setaffinity(0, {core})
    print(f"{'image':<13}{'split':<6}{'pixel':<6}{'ours':>9}{'pyFAI':>9}{'ratio':>7}  Mpixel/s, best of 20 images, median of {rounds} turns; setup s")
    with tempfile.TemporaryDirectory() as folder:
        for shape, scale in [(MODULE, 1), ((2048, 2048), 2)]:
            image = random.poisson(10, shape).astype(numpy.float32)
            values = (0.1 * scale, 0.02 * scale, 0.03 * scale, 0.05, -0.02, 0)
            for split in ["no", "full"]:
                integrator = peer(values, shape)
                method = (split, "csr", "cython")
                integrator.integrate1d_ng(image, 1000, unit="q_nm^-1", method=method)
                engine = next(each.engine for each in integrator.engines.values() if hasattr(each.engine, "integrate_ng"))
                solid_angle = integrator.solidAngleArray(shape)
                times = {"f32": [], "i16": [], "pyFAI": []}
                for _ in range(rounds):
                    for pixel in ["f32", "i16"]:
                        result = ours(program, folder, values, image, rounds=20, pixel=pixel, core=core, bins=1000,
                                      split=split)
                        times[pixel].append(min(result["seconds"]))
                    own = []
                    for _ in range(20):
                        start = time.perf_counter()
                        engine.integrate_ng(image, error_model=pyFAI.containers.ErrorModel.POISSON,
                                            solidangle=solid_angle)
                        own.append(time.perf_counter() - start)
                    times["pyFAI"].append(min(own))
                rate = {side: image.size / statistics.median(all) / 1e6 for side, all in times.items()}
                for pixel in ["f32", "i16"]:
                    print(f"{shape[0]:>4} x {shape[1]:<6}{split:<6}{pixel:<6}{rate[pixel]:>9.0f}{rate['pyFAI']:>9.0f}"
                          f"{rate[pixel] / rate['pyFAI']:>7.1f}  {result['setup_seconds']:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--core", type=int, default=0)
    args = parser.parse_args()
    if args.speed:
        speed(args.program, args.core)
        return 0
    errors = judge(args.program, args.data)
    print("\n".join(errors), file=sys.stderr)
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
