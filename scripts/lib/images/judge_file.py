#!/usr/bin/env python3
"""Reads an image file (docs/formats/image-file.md) with h5py and hdf5plugin, and compares it.

usage: judge_file.py [--pixels FILE] [--facts FILE] [--images N] [--unfinished] IMAGE_FILE

  --pixels FILE  the pixels that all images must have, one image after the other, in the type of the file, row by row,
                 little-endian; without it the images are read and not compared
  --facts FILE   JSON: for each name of a dataset of /entry/images a list with one value for each image; packets_missing
                 has a list of words for each module
  --images N     the number of images that the file must have
  --unfinished   the file of a writer that was killed, or still writes: at least N images, and no end

It prints a summary as JSON, and what is wrong on standard error. Exit status: 0 if the file is right, 1 if it is not,
2 for an invalid request. It needs numpy, h5py and hdf5plugin from PyPI.
"""

import argparse
import json
import sys

import h5py
import hdf5plugin  # registers the filters
import numpy

FACTS = ("frame_number", "timestamp", "exposure", "bunch_id", "peak_count", "kept", "is_sparse", "packets_missing",
         "stack", "stack_images", "stack_incomplete", "stack_packets_missing")
CLASSES = {"/": "NXroot", "/entry": "NXentry", "/entry/data": "NXdata", "/entry/instrument": "NXinstrument",
           "/entry/instrument/beam": "NXbeam", "/entry/instrument/detector": "NXdetector",
           "/entry/images": "NXcollection", "/entry/sparse": "NXcollection"}


def sparse_images(group, shape, dtype):
    """The sparse images by their number in the file, each with all of its pixels."""
    rows, columns = shape
    offsets = group["rows"][:].reshape(-1, rows + 1).astype(numpy.int64)
    first, column, value = group["first"][:], group["columns"][:], group["values"][:]
    for number, start, ends in zip(group["image"][:], first, offsets):
        image = numpy.zeros(shape, dtype)
        row = numpy.repeat(numpy.arange(rows), numpy.diff(ends))
        pixels = slice(int(start), int(start) + int(ends[-1]))
        image[row, column[pixels]] = value[pixels]
        yield int(number), image


def judge_peaks(peaks, facts, images):
    """What is wrong with the peaks: as CrystFEL reads them, the first nPeaks of each row."""
    number = peaks["nPeaks"][:images]
    wrong = [] if numpy.array_equal(number, facts["peak_count"][:images]) else ["nPeaks is not peak_count"]
    for name, values in peaks.items():
        if name == "nPeaks":
            continue
        values = values[:images]
        beyond = numpy.arange(values.shape[1]) >= number[:, numpy.newaxis]
        if not numpy.isfinite(values).all() or values[beyond].any():
            wrong.append(f"{name}: values behind the last peak, or no numbers")
    return wrong


def judge_curves(group, images):
    """What is wrong with the curves: as a viewer of NXdata finds them."""
    mean, axis = group[group.attrs["signal"]], group[group.attrs["axes"].split()[1]]
    errors = group[group.attrs["signal"] + "_errors"]
    wrong = [] if mean.shape == errors.shape and mean.shape[1:] == axis.shape else ["curves of several shapes"]
    if not (numpy.diff(axis[:]) > 0).all():
        wrong.append("the radial coordinate does not rise")
    if not numpy.array_equal(numpy.isnan(mean[:images]), numpy.isnan(errors[:images])):
        wrong.append("means without errors")
    return wrong


def judge(file, arguments):
    """A summary of the file, and a list of what is wrong."""
    wrong = [f"{path}: NX_class is not {name}" for path, name in CLASSES.items()
             if path not in file or file[path].attrs.get("NX_class") != name]
    if wrong:
        return {}, wrong
    # As a viewer finds the images: default, default, signal.
    entry = file[file.attrs["default"]]
    data = entry[entry.attrs["default"]]
    data = data[data.attrs["signal"]]
    if entry["instrument/detector/data"] != data:
        wrong.append("/entry/instrument/detector/data is another dataset")
    facts = {name: entry["images"][name] for name in FACTS}
    images = len(facts["frame_number"])
    finished = "end_time" in entry
    if arguments.unfinished:
        if finished:
            wrong.append("the file has an end")
    else:
        if not finished:
            wrong.append("the file has no end")
        lengths = {name: len(values) for name, values in [("data", data), *facts.items()] if len(values) != images}
        if lengths:
            wrong.append(f"{images} frame numbers, and other lengths of {lengths}")
    if arguments.images is not None and (images < arguments.images if arguments.unfinished
                                         else images != arguments.images):
        wrong.append(f"{images} images of {arguments.images}")

    is_sparse = facts["is_sparse"][:images].astype(bool)
    sparse = dict(sparse_images(entry["sparse"], data.shape[1:], data.dtype))
    if not arguments.unfinished and sorted(sparse) != numpy.flatnonzero(is_sparse).tolist():
        wrong.append("the images in sparse are not those of is_sparse")
    expected = None
    if arguments.pixels:
        expected = numpy.fromfile(arguments.pixels, data.dtype.newbyteorder("<")).reshape(-1, *data.shape[1:])
        if len(expected) < images:
            wrong.append(f"{len(expected)} images to compare with, and {images} in the file")
    for number in range(images):
        image = sparse.get(number) if is_sparse[number] else data[number]
        if image is None:
            wrong.append(f"image {number} is not there")
        elif expected is not None and number < len(expected):
            # As bits: a NaN equals itself.
            different = (image.view(f"u{data.dtype.itemsize}") != expected[number].view(f"u{data.dtype.itemsize}"))
            if different.any():
                row, column = numpy.argwhere(different)[0]
                wrong.append(f"image {number}: {different.sum()} pixels differ, the first in row {row}, column {column}")
    if arguments.facts:
        with open(arguments.facts, encoding="utf8") as source:
            for name, values in json.load(source).items():
                if not numpy.array_equal(facts[name][:images], numpy.array(values)[:images]):
                    wrong.append(f"{name} differs")
    if "peaks" in file["entry"]:
        wrong += judge_peaks(file["entry/peaks"], facts, images)
    if "integration" in file["entry"]:
        wrong += judge_curves(file["entry/integration"], images)
    summary = {"images": images, "sparse": int(is_sparse.sum()), "shape": list(data.shape[1:]), "dtype": data.dtype.name,
               "filters": list(data._filters), "packets_missing": int(sum(
                   bin(int(word)).count("1") for word in facts["packets_missing"][:images].ravel())),
               "finished": finished}
    return summary, wrong


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0], description=__doc__.split("\n")[0],
                                     epilog=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="IMAGE_FILE")
    parser.add_argument("--pixels", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--facts", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--images", metavar="N", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--unfinished", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    assert hdf5plugin.version
    with h5py.File(arguments.file, "r", swmr=arguments.unfinished) as file:
        summary, wrong = judge(file, arguments)
    print(json.dumps(summary))
    for line in wrong[:20]:
        print(f"{arguments.file}: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
