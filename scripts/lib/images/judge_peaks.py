#!/usr/bin/env python3
"""Compares Bragg peaks with those of pyFAI's peak finder, and both with the truth of synthetic images.

usage: judge_peaks.py PROGRAM [--images N]

PROGRAM is the example `peaks` of pollux-images. Needs numpy, pyFAI, pyopencl and an OpenCL implementation (Debian's
pocl-opencl-icd for a CPU); prints `skipped: WHY` where one is missing.

The finders differ: pyFAI takes each local maximum of a patch of 5 x 5 pixels that has enough pixels above the threshold
in its 3 x 3 pixels, and computes the centre of mass of the patch; ours takes all connected pixels above the threshold.
Both clip the background of a ring at the same number of standard deviations and have the same threshold. On isolated
spots, 98 % of pyFAI's peaks must be ours and 90 % of ours pyFAI's, which asks more of weak spots, at a distance of at
most half a pixel; the mean distance must be 0.15 pixels at most; and 99 % of the spots must be found by ours.
"""

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

logging.disable(logging.WARNING)

SHAPE = (512, 1024)
PIXEL = 75e-6
# Beam, in pixels: row and column.
CENTRE = (255.5, 511.5)
# Spots of an image, their least distance from each other, their width and photons.
SPOTS, APART, WIDTH, PHOTONS = 80, 16, 1.2, (150, 3000)
OPTIONS = {"clip_sigma": 4.0, "clip_iterations": 5, "pixel_snr": 5.0, "min_photons": 3.0, "min_pixels": 3,
           "ring_samples": 1 << 20}
# What must hold.
THEIRS, OURS, TRUE, DISTANCE, MEAN_DISTANCE = 0.98, 0.90, 0.99, 0.5, 0.15


class Skip(Exception):
    """A requirement is missing."""


def libraries():
    """numpy, and pyFAI's finder for images of SHAPE: a function that gives places."""
    try:
        import numpy
        import pyopencl
        from pyFAI.containers import ErrorModel
        from pyFAI.integrator.azimuthal import AzimuthalIntegrator
        from pyFAI.opencl.peak_finder import OCL_PeakFinder
        from pyFAI.units import to_unit
    except ImportError as why:
        raise Skip(f"{why}: pip install numpy pyFAI pyopencl") from why
    try:
        if not pyopencl.get_platforms():
            raise Skip("no OpenCL platform: apt-get install pocl-opencl-icd")
    except pyopencl.Error as why:
        raise Skip(f"no OpenCL platform ({why}): apt-get install pocl-opencl-icd") from why

    poni = [(centre + 0.5) * PIXEL for centre in CENTRE]
    geometry = AzimuthalIntegrator(dist=0.1, poni1=poni[0], poni2=poni[1], pixel1=PIXEL, pixel2=PIXEL, wavelength=1e-10)
    geometry.detector.shape = SHAPE
    unit = to_unit("r_m")
    radius = geometry.array_from_unit(SHAPE, typ="center", unit=unit, scale=False)
    bins = int(radius.max() / PIXEL) + 1
    integrator = geometry.setup_sparse_integrator(SHAPE, npt=bins, unit=unit, split="no", algo="CSR", scale=False)
    finder = OCL_PeakFinder(integrator.lut, image_size=SHAPE[0] * SHAPE[1], unit=unit, bin_centers=integrator.bin_centers,
                            radius=radius, devicetype="CPU")

    def find(image):
        found = finder.peakfinder(image, error_model=ErrorModel.AZIMUTHAL, cutoff_clip=OPTIONS["clip_sigma"],
                                  cycle=OPTIONS["clip_iterations"], cutoff_peak=OPTIONS["pixel_snr"],
                                  noise=OPTIONS["min_photons"], patch_size=5, connected=OPTIONS["min_pixels"])
        return numpy.stack([found["pos0"], found["pos1"]], axis=1)

    return numpy, find


def synthetic(numpy, seed):
    """An image of Poisson noise, and the places of its spots."""
    rng = numpy.random.default_rng(seed)
    rows, columns = numpy.mgrid[:SHAPE[0], :SHAPE[1]]
    radius = numpy.hypot(rows - CENTRE[0], columns - CENTRE[1])
    mean = 0.5 + 5 * numpy.exp(-radius / 150) + 2 * numpy.exp(-((radius - 200) / 4) ** 2)
    places = []
    while len(places) < SPOTS:
        place = numpy.array([rng.uniform(APART, side - APART) for side in SHAPE])
        if all(numpy.hypot(*(place - other)) > APART for other in places):
            places.append(place)
            around = tuple(slice(int(at) - 8, int(at) + 9) for at in place)
            square = (rows[around] - place[0]) ** 2 + (columns[around] - place[1]) ** 2
            density = numpy.exp(-square / (2 * WIDTH ** 2)) / (2 * numpy.pi * WIDTH ** 2)
            mean[around] += numpy.exp(rng.uniform(*numpy.log(PHOTONS))) * density
    return rng.poisson(mean).astype("<f4"), numpy.array(places)


def matched(numpy, places, others):
    """Distances from each of the places to the nearest of the others, of those within reach."""
    if not len(places) or not len(others):
        return numpy.zeros(0)
    offsets = places[:, None, :] - others[None, :, :]
    nearest = numpy.hypot(offsets[..., 0], offsets[..., 1]).min(axis=1)
    return nearest[nearest <= DISTANCE]


def ours(numpy, program, files, folder):
    request = folder / "request.json"
    request.write_text(json.dumps({"rows": SHAPE[0], "columns": SHAPE[1], "module_rows": SHAPE[0], "centre": CENTRE,
                                   "config": OPTIONS}), encoding="utf8")
    done = subprocess.run([program, request, *files], check=True, capture_output=True, text=True, timeout=300)
    lines = [json.loads(line)["peaks"] for line in done.stdout.splitlines()]
    return [numpy.array([(peak["row"], peak["column"]) for peak in peaks]).reshape(-1, 2) for peaks in lines]


def judge(program, count):
    numpy, theirs = libraries()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = [synthetic(numpy, seed) for seed in range(count)]
        files = [folder / f"{number}.f32" for number in range(count)]
        for file, (image, _) in zip(files, images):
            image.tofile(file)
        found = ours(numpy, program, files, folder)
    sums = {name: 0 for name in ("ours", "theirs", "truth", "ours true", "theirs true", "ours theirs", "theirs ours")}
    distances = []
    for peaks, (image, truth) in zip(found, images):
        peer = theirs(image)
        sums["ours"], sums["theirs"] = sums["ours"] + len(peaks), sums["theirs"] + len(peer)
        sums["truth"] += len(truth)
        sums["ours true"] += len(matched(numpy, truth, peaks))
        sums["theirs true"] += len(matched(numpy, truth, peer))
        distances.append(matched(numpy, peaks, peer))
        sums["ours theirs"] += len(distances[-1])
        sums["theirs ours"] += len(matched(numpy, peer, peaks))
    distances = numpy.concatenate(distances)
    of_theirs = sums["theirs ours"] / max(1, sums["theirs"])
    of_ours = sums["ours theirs"] / max(1, sums["ours"])
    found = sums["ours true"] / sums["truth"]
    distance = distances.mean() if len(distances) else numpy.inf
    print(f"{sums['truth']} spots, {sums['ours']} peaks, {sums['theirs']} peaks of pyFAI; within {DISTANCE} pixels of a "
          f"spot: {sums['ours true']} and {sums['theirs true']}; of pyFAI's peaks {of_theirs:.1%} are ours, of ours "
          f"{of_ours:.1%} are pyFAI's; mean distance {distance:.3f} pixels")
    return of_theirs >= THEIRS and of_ours >= OURS and found >= TRUE and distance <= MEAN_DISTANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--images", type=int, default=10, help="number of images")
    options = parser.parse_args()
    try:
        return 0 if judge(options.program, options.images) else 1
    except Skip as why:
        print(f"skipped: {why}")
        return 0


if __name__ == "__main__":
    sys.exit(main())
