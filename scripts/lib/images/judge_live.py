#!/usr/bin/env python3
"""A client of a live stream (docs/formats/live-stream.md), with pyzmq, cbor2 and dectris-compression.

usage: judge_live.py [--pixels FILE] [--images N] [--late SECONDS] [--pause SECONDS] [--timeout SECONDS] ENDPOINT

  ENDPOINT           tcp://ADDRESS:PORT
  --pixels FILE      the pixels of the images by image_id, one image after the other, in the type of the stream, row by
                     row, little-endian; without it the images are decoded and not compared
  --images N         the number of images that must come; without it any number
  --late SECONDS     connect after this time
  --pause SECONDS    read nothing for this time after the first image
  --heartbeat        send a PING every 100 ms, as a client does that watches its connection
  --timeout SECONDS  give up if no message comes for this time (default 20)

It reads until the end message, and prints a summary as JSON, and what is wrong on standard error. It prints `connected`
on standard error once the connection is made. Exit status: 0 if the stream is right, 1 if it is not, 2 for an invalid
request. It needs numpy, pyzmq, cbor2 and dectris-compression from PyPI.
"""

import argparse
import json
import sys
import time

import cbor2
import numpy
import zmq
from dectris.compression import decompress
from zmq.utils.monitor import recv_monitor_message

# Typed arrays in little-endian order (RFC 8746, table 1).
TYPES = {64: "u1", 68: "u1", 69: "<u2", 70: "<u4", 71: "<u8", 72: "i1", 77: "<i2", 78: "<i4", 79: "<i8", 85: "<f4", 86: "<f8"}
# Fields that a message of stream v2 has.
START = {"arm_date", "beam_center_x", "beam_center_y", "channels", "count_time", "detector_description",
         "detector_serial_number", "detector_translation", "frame_time", "goniometer", "image_dtype", "image_size_x",
         "image_size_y", "incident_energy", "incident_wavelength", "number_of_images", "pixel_size_x", "pixel_size_y",
         "sensor_material", "sensor_thickness", "series_id", "series_unique_id", "threshold_energy", "user_data"}
IMAGE = {"data", "image_id", "real_time", "series_date", "series_id", "series_unique_id", "start_time", "stop_time",
         "user_data"}
END = {"series_id", "series_unique_id"}


def decoded(decoder_or_tag, tag_or_immutable):
    """The value of a tag. cbor2 6 calls it with the tag first, and cbor2 5 with the decoder first."""
    tag = decoder_or_tag if isinstance(decoder_or_tag, cbor2.CBORTag) else tag_or_immutable
    if tag.tag == 56500:
        algorithm, element, data = tag.value
        return decompress(data, algorithm, elem_size=element)
    if tag.tag in TYPES:
        return numpy.frombuffer(tag.value, TYPES[tag.tag])
    if tag.tag == 40:
        shape, values = tag.value
        return values.reshape(tuple(shape))
    return tag


class Series:
    """What has come of a series, and what is wrong with it."""

    def __init__(self, pixels):
        self.pixels, self.start, self.end, self.ids, self.wrong = pixels, None, False, [], []
        self.reference = None

    def expect(self, right, what):
        if not right:
            self.wrong.append(what)

    def fields(self, message, names):
        missing = sorted(names - message.keys())
        self.expect(not missing, f"{message['type']}: no {', '.join(missing)}")
        self.expect(next(iter(message)) == "type", f"{message['type']}: type is not its first field")
        if self.start and not missing:
            same = all(message[name] == self.start[name] for name in END)
            self.expect(same, f"{message['type']}: another series than that of the start")
        return not missing

    def add(self, message):
        kind = message["type"]
        if kind == "start":
            # A client that comes back gets it again.
            self.expect(self.start in (None, message), "another start")
            self.start = message
            self.fields(message, START)
            if self.pixels:
                dtype = numpy.dtype(message["image_dtype"]).newbyteorder("<")
                shape = message["image_size_y"], message["image_size_x"]
                self.reference = numpy.fromfile(self.pixels, dtype).reshape(-1, *shape)
        elif kind == "image":
            self.expect(self.start is not None, "an image before the start")
            if self.start and self.fields(message, IMAGE):
                self.image(message)
        elif kind == "end":
            self.fields(message, END)
            self.end = True
        else:
            self.wrong.append(f"a message of type {kind}")

    def image(self, message):
        number = message["image_id"]
        self.expect(not self.ids or number > self.ids[-1], f"image {number} after {self.ids[-1:]}")
        self.ids.append(number)
        self.expect(list(message["data"]) == self.start["channels"], f"image {number}: channels {list(message['data'])}")
        times = [message[name] for name in ("start_time", "stop_time", "real_time")]
        self.expect(times[0][0] + times[2][0] == times[1][0] and len({it[1] for it in times}) == 1,
                    f"image {number}: times {times}")
        user = message["user_data"]
        loss = user["loss_map"]
        bits = sum(bin(int(word)).count("1") for word in loss.ravel())
        self.expect(bits == user["packets_missing"], f"image {number}: {bits} bits of the loss map")
        if "peaks" in user:
            self.expect(user["peaks"].shape == (user["peak_count"], 4), f"image {number}: peaks {user['peaks'].shape}")
        if "curve" in user:
            bins = len(self.start["user_data"]["radial"])
            self.expect(user["curve"].shape == (2, bins), f"image {number}: curve {user['curve'].shape}")
        for pixels in message["data"].values():
            shape = self.start["image_size_y"], self.start["image_size_x"]
            kind = self.start["image_dtype"]
            self.expect(pixels.shape == shape and pixels.dtype.name == kind, f"image {number}: {pixels.shape} {pixels.dtype}")
            if self.reference is not None:
                same = number < len(self.reference) and pixels.tobytes() == self.reference[number].tobytes()
                self.expect(same, f"image {number}: the pixels differ")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0], description=__doc__.split("\n")[0],
                                     epilog=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("endpoint", metavar="ENDPOINT")
    parser.add_argument("--pixels", metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("--images", metavar="N", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--late", metavar="SECONDS", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--pause", metavar="SECONDS", type=float, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--heartbeat", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--timeout", metavar="SECONDS", type=float, default=20, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    series = Series(arguments.pixels)
    time.sleep(arguments.late)
    socket = zmq.Context.instance().socket(zmq.PULL)
    socket.set_hwm(2)
    if arguments.heartbeat:
        socket.heartbeat_ivl, socket.heartbeat_timeout = 100, 1000
    timeout = int(1000 * arguments.timeout)
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    socket.connect(arguments.endpoint)
    if monitor.poll(timeout):
        recv_monitor_message(monitor)
        print("connected", file=sys.stderr, flush=True)
    received = 0
    while not series.end:
        if not socket.poll(timeout):
            series.wrong.append(f"no message for {arguments.timeout} s")
            break
        message = socket.recv()
        received += len(message)
        series.add(cbor2.loads(message, tag_hook=decoded))
        if len(series.ids) == 1:
            time.sleep(arguments.pause)
            arguments.pause = 0
    if arguments.images is not None:
        series.expect(len(series.ids) == arguments.images, f"{len(series.ids)} images of {arguments.images}")
    print(json.dumps({"images": len(series.ids), "first": series.ids[:1], "last": series.ids[-1:], "bytes": received,
                      "end": series.end, "dtype": series.start["image_dtype"] if series.start else None}))
    for line in series.wrong[:20]:
        print(f"{arguments.endpoint}: {line}", file=sys.stderr)
    sys.exit(1 if series.wrong else 0)


if __name__ == "__main__":
    main()
