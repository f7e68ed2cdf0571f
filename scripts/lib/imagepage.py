"""The page of image-stream in a browser: the image, its marks and controls, and the radial curve,
against what the emulated detector says about its images."""

import json
import math
import subprocess
import time

from lib import anypage
from lib.anypage import LAPTOP, PHONE
from lib.runpage import tile
from lib.testbed import check

# Frames a second of the capture, which is played at its own pace, and how many: they outlast the tests.
RATE, FRAMES = 3, 480
ROWS_OF_IMAGE, COLUMNS = 512, 1024
# A pixel in mm, and a bin of the curve.
PIXEL, BIN = 0.075, 0.1
# A peak that is found, in photons, and how far from the truth its mark may be, in pixels.
STRONG, NEAR = 400, 1.5

CONFIG = """\
[detector]
interfaces = 2
[beam]
distance_m = 0.1
photon_energy_ev = 12398.4
[calibration]
pedestals = ["cal/mod0_pedeG0.bin", "cal/mod0_pedeG1.bin", "cal/mod0_pedeG2.bin"]
gains = ["cal/mod0_gainG0.bin", "cal/mod0_gainG1.bin", "cal/mod0_gainG2.bin"]
mask = "cal/mod0_mask.bin"
[[receiver]]
file = "FOLDER/part.raw"
transfer = { name = "part", region = [{ first_row = 100, rows = 20, first_column = 500, columns = 30 }] }
[[stage]]
name = "veto"
min_photons = 10.0
min_pixels = 5
[[stage]]
name = "peaks"
[[stage]]
name = "integrate"
geometry = { dist = 0.1, poni1 = 0.0192, poni2 = 0.0384, pixel1 = 75e-6, pixel2 = 75e-6 }
curve = { unit = "r_mm", bins = 400, range = [0.0, 40.0], solid_angle = false }
"""

# Of the canvas: the colour at a pixel of the image, in bytes.
COLOUR = """(([row, column]) => {
    const canvas = document.getElementById('image');
    const { scale, left, top } = corner();
    const ratio = canvas.width / look.size[0];
    const [x, y] = [(column + 0.5 - left) * scale * ratio, (row + 0.5 - top) * scale * ratio];
    return [...read(Math.floor(x), Math.floor(y), 1, 1)];
})"""

# Reads a part of it, from a copy: the browser tells on the console of a canvas that is read often.
READ = """globalThis.read = (x, y, width, height) => {
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [width, height];
    const context = copy.getContext('2d', { willReadFrequently: true });
    context.drawImage(document.getElementById('image'), -x, -y);
    return context.getImageData(0, 0, width, height).data;
}; 0"""

# The most intense peak of the image: row, column, photons.
PEAK = "[...look.picture.image.peaks].sort((a, b) => b[2] - a[2])[0]"
LARGEST = "look.picture.values.reduce((a, b) => (b > a && b < Infinity ? b : a), 0)"

MARKS = """[...document.querySelectorAll('#overlay circle.peak')].map((mark) =>
    ['cy', 'cx'].map((name) => Number(mark.getAttribute(name)) - 0.5))"""


def prepare(binaries, folder):
    """A capture of the emulated detector; returns the configuration, and the run of it."""
    words = [binaries / "pollux-emulator", "images", "--port", f"pcap:tx={folder / 'run.pcapng'}",
             "--interfaces", 2, "--frames", FRAMES, "--rate", RATE, "--stack", 4, "--rings", 3, "--ring-photons", 10,
             "--truth", folder / "truth.json", "--calibration-out", folder / "cal", "--quiet"]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)
    config = folder / "images.toml"
    config.write_text(CONFIG.replace("FOLDER", str(folder)), encoding="utf8")
    return config, [binaries / "image-stream", "--port", f"pcap:rx={folder / 'run.pcapng'},pace=recorded",
                    "--config", config, "--http", "127.0.0.1:0"]


def truth(run):
    return json.loads((run.config.parent / "truth.json").read_text())


def change(run, field, value):
    """Sets a control as a user does."""
    name = "checked" if isinstance(value, bool) else "value"
    run.browser.see(f"document.getElementById('{field}').{name} = {json.dumps(value)};"
                    f"document.getElementById('{field}').dispatchEvent(new Event('change'))")


def colour_of(run, value):
    """The colour of a value, on the linear scale of viridis."""
    return run.browser.see(f"""(() => {{
        const at = Math.round(255 * Math.min(1, Math.max(0, position(look.range, 'linear')({value}))));
        return [...new Uint8Array(new Uint32Array([colourMap('viridis')[at]]).buffer)];
    }})()""")


def hold(run):
    """Shows the latest image, and no later one."""
    change(run, "view", "latest")
    run.browser.until("no image", "look.live && look.picture?.view === 'latest'")
    run.click("live")
    time.sleep(1)
    check("still live", run.browser.see("document.getElementById('live').getAttribute('aria-pressed')") == "false")


def whole(run):
    """Every pixel of the image that is shown: the window is wide enough, or the view is moved."""
    return run.browser.see("({frame: look.picture.frame, factor: look.picture.factor, region: look.picture.region})")


def image_is_drawn(run):
    """The colours of the canvas are those of the pixels."""
    run.browser.size(1600, 900)
    run.browser.see(READ)
    hold(run)
    run.browser.until("not all pixels are shown",
                      "(moved(), look.picture?.factor === 1 && look.picture.columns === 1024)")
    check(f"{whole(run)}", whole(run)["region"] == [0, 0, ROWS_OF_IMAGE, COLUMNS])
    # Bad pixels by the detector's mask, and the most intense peaks.
    mask = (run.config.parent / "cal/mod0_mask.bin").read_bytes()
    bad = [divmod(i, COLUMNS) for i, byte in enumerate(mask) if byte][:50]
    expected = run.browser.see("[...BAD.viridis, 255]")
    colours = [run.browser.see(f"{COLOUR}({json.dumps(pixel)})") for pixel in bad]
    check(f"bad pixels are {colours}", all(colour == expected for colour in colours))
    frame = whole(run)["frame"]
    peaks = truth(run)["images"][frame % 4]["peaks"]
    intense = [peak for peak in peaks if peak["photons"] > STRONG]
    check(f"few intense peaks: {len(intense)}", len(intense) > 5)
    bright = sum(run.browser.see(f"{COLOUR}({[round(peak['row']), round(peak['column'])]})")[:2] > [150, 200]
                 for peak in intense)
    check(f"{bright} of {len(intense)} peaks are bright", bright >= 0.8 * len(intense))
    kinds = run.browser.see("""(() => {
        const canvas = document.getElementById('image');
        return new Set(new Uint32Array(read(0, 0, canvas.width, canvas.height).buffer)).size;
    })()""")
    check(f"{kinds} colours", kinds > 10)


def peaks_are_marked(run):
    """Where the detector has them, and not in vetoed images."""
    frame = whole(run)["frame"]
    peaks = truth(run)["images"][frame % 4]["peaks"]
    marks = run.browser.see(MARKS)
    check(f"{len(marks)} marks", len(marks) > 5)
    near = [min(math.hypot(row - peak["row"], column - peak["column"]) for peak in peaks) for row, column in marks]
    wrong = sum(distance > NEAR for distance in near)
    check(f"{wrong} of {len(marks)} marks are at no peak", wrong <= 0.1 * len(marks))
    # A mark is around its pixels on the screen.
    seen = run.browser.see("""(() => {
        const box = document.querySelector('#overlay circle.peak').getBoundingClientRect();
        const canvas = document.getElementById('image').getBoundingClientRect();
        return pixelAt((box.left + box.right) / 2 - canvas.left, (box.top + box.bottom) / 2 - canvas.top);
    })()""")
    row, column = marks[0]
    check(f"{marks[0]} is seen at {seen}", abs(seen["row"] - row) <= 1 and abs(seen["column"] - column) <= 1)
    change(run, "marks", False)
    check("marks that are not wanted", run.browser.see(MARKS) == [])
    change(run, "marks", True)


def pointer_tells_the_value(run):
    told, value = run.browser.see("""(() => {
        const [row, column] = look.picture.image.peaks[0].slice(0, 2).map(Math.round);
        const { scale, left, top } = corner();
        showPointer((column + 0.5 - left) * scale, (row + 0.5 - top) * scale);
        return [document.getElementById('pointer').textContent,
            [row, column, look.picture.values[row * 1024 + column]]];
    })()""")
    row, column, photons = value
    check(f"{told}: {value}", told.startswith(f"Row {row}, column {column}: {photons} photons; 2θ "))
    angle = math.degrees(math.atan(math.hypot(row - 255.5, column - 511.5) * PIXEL / 100))
    check(f"{told}: {angle}", f"2θ {angle:.2f}°" in told)
    spacing = 1 / (2 * math.sin(math.radians(angle) / 2))
    check(f"{told}: d {spacing}", abs(float(told.split("d ")[1].split()[0]) / spacing - 1) < 0.01)


def zooms(run):
    """The part that is seen is asked for, its pixels are as large as they should be, and it can be moved."""
    scale = run.browser.see("scaleOf()")
    row, column = run.browser.see(PEAK)[:2]
    # At the peak, as with the wheel.
    run.browser.see(f"""(() => {{
        const {{ scale, left, top }} = corner();
        const canvas = document.getElementById('image');
        const wheel = new WheelEvent('wheel', {{ deltaY: -1, ctrlKey: true, cancelable: true }});
        Object.defineProperty(wheel, 'offsetX', {{ value: ({column} + 0.5 - left) * scale }});
        Object.defineProperty(wheel, 'offsetY', {{ value: ({row} + 0.5 - top) * scale }});
        for (let i = 0; i < 12; i += 1) canvas.dispatchEvent(wheel);
    }})()""")
    closer = run.browser.see("scaleOf()")
    check(f"from {scale} to {closer}", closer > 3 * scale)
    run.browser.until("the part is not asked for", "look.picture.columns < 500 && look.picture.factor === 1")
    first, left, rows, columns = whole(run)["region"]
    check("the peak left the view", first <= row < first + rows and left <= column < left + columns)
    # A pixel of the image is a square of its own colour.
    for r, c in ((round(row) + i, round(column) + j) for i in (-2, -1, 0, 1, 2) for j in (-2, -1, 0, 1, 2)):
        if first <= r < first + rows and left <= c < left + columns:
            value = run.browser.see(f"look.picture.values[{(r - first) * columns + c - left}]")
            # A pixel without a value is no number.
            told, wanted = run.browser.see(f"{COLOUR}({[r, c]})"), value is not None and colour_of(run, value)
            check(f"{value} at {r}, {c} is {told}, not {wanted}", wanted in (False, told))
    before = run.browser.see("look.column")
    run.press("ArrowRight", "image")
    check("not moved", run.browser.see("look.column") > before)
    run.click("whole")
    run.browser.until("not whole again", "look.zoom === 1 && look.picture.columns === 1024")


def colours_can_be_chosen(run):
    at = [round(n) for n in run.browser.see(PEAK)[:2]]
    first = run.browser.see(f"{COLOUR}({at})")
    change(run, "map", "inferno")
    other = run.browser.see(f"{COLOUR}({at})")
    check(f"{first} in both maps", first != other)
    change(run, "map", "viridis")
    change(run, "scale", "log")
    low, high = run.browser.see("look.range")
    check(f"a logarithmic scale from {low} to {high}", 0 < low < high)
    change(run, "scale", "linear")
    change(run, "auto", False)
    value = run.browser.see(f"look.picture.values[{at[0]} * 1024 + {at[1]}]")
    change(run, "high", str(4 * value))
    darker = run.browser.see(f"{COLOUR}({at})")
    expected = colour_of(run, value)
    check(f"{value} is {darker}, not {expected}", darker == expected and darker != first)
    ticks = run.browser.see("document.getElementById('ticks').textContent")
    check(f"the scale ends at {ticks}", "photons" in ticks)
    change(run, "auto", True)


def projections(run):
    """The maximum is at least the latest image; the mean is of all images."""
    latest = run.browser.see(LARGEST)
    for view in ("maximum", "mean"):
        change(run, "view", view)
        run.browser.until(f"no {view}", f"look.picture?.view === '{view}'")
        told = run.browser.see("document.getElementById('caption').textContent")
        check(told, told.lower().startswith(f"{view} of ") and "images" in told)
        check("marks of an image", run.browser.see(MARKS) == [])
        if view == "maximum":
            most = run.browser.see(LARGEST)
            check(f"{most} is less than {latest}", most >= latest)
    change(run, "view", "kept")
    run.browser.until("no kept image", "look.picture?.view === 'kept' && !look.picture.image.vetoed")
    change(run, "view", "latest")


def live_goes_on(run):
    run.browser.until("not live", "look.live && look.picture?.view === 'latest'")
    frame = whole(run)["frame"]
    run.browser.until("no later image", f"look.picture.frame > {frame}")
    run.click("live")
    # The last answer may be under way.
    time.sleep(1)
    frame = whole(run)["frame"]
    uptime = run.browser.see("now.uptime_s")
    run.browser.until("the page stands still", f"now.uptime_s > {uptime} + 2")
    check("a held image is replaced", whole(run)["frame"] == frame)
    run.click("live")


def curve_is_drawn(run):
    """Its maximum is the innermost ring, of the mean and on the screen."""
    radius = truth(run)["rings"][0]["radius"] * PIXEL
    run.browser.until("no curve", "document.querySelectorAll('#curve .line').length === 2")
    # Within the innermost millimetres there are few pixels.
    at, x, left, right = run.browser.see("""(() => {
        const { mean, radial } = curves.last;
        const first = radial.findIndex((r) => r > 10);
        const most = mean.indexOf(Math.max(...mean.slice(first)), first);
        const line = document.querySelectorAll('#curve .line')[1];
        const points = line.getAttribute('d').slice(1).split('L').map((point) => point.split(' ').map(Number));
        const top = points.slice(first).sort((a, b) => a[1] - b[1])[0];
        return [radial[most], top[0], points[0][0], points.at(-1)[0]];
    })()""")
    check(f"at {at} mm, not {radius}", abs(at - radius) < 2 * BIN)
    drawn = (x - left) / (right - left) * (40 - BIN) + BIN / 2
    check(f"drawn at {drawn} mm, not {radius}", abs(drawn - radius) < 3 * BIN)
    unit = run.browser.see("document.querySelector('#curve .unit').textContent")
    check(f"the axis is {unit}", unit == "radius (mm)")
    told = run.browser.see("document.getElementById('curve-caption').textContent")
    check(told, "mean of" in told and "radius (mm)" in told)
    change(run, "curve-scale", "log")
    run.browser.until("no logarithmic axis", "document.querySelectorAll('#curve .line').length === 2")
    change(run, "curve-scale", "linear")


def counters_move(run):
    run.browser.until("no rate", f"Number.parseFloat({tile('Images/s')}[0]) > 0")
    rate = float(run.browser.see(tile("Images/s"))[0])
    check(f"{rate} images a second", 0.5 * RATE < rate < 2 * RATE)
    value, below, _ = run.browser.see(tile("Hit rate"))
    check(f"hit rate {value}, {below}", value == "100.0 %" and below == "100.0 % in all")
    titles = run.browser.see("[...document.querySelectorAll('#minute h3')].map((title) => title.textContent)")
    check(f"plots: {titles}", "Hit rate, last minute" in titles)
    top = run.browser.see("document.querySelectorAll('#minute svg')[1].querySelector('text').textContent")
    check(f"the hit rate goes to {top}", top == "100.0 %")
    cells = run.cells("receivers")
    check(f"receivers: {cells}", cells[0][:2] == ["part", "20 × 30 at 100, 500"] and float(cells[0][2]) > 0)
    frames = dict(row[:2] for row in run.cells("frames"))
    check(f"frames: {frames}", float(frames["frames complete"]) > 0 and frames["frames partial"] == "0")
    balance = run.browser.see("document.getElementById('balance').textContent")
    check(balance, "delivered + 0 dropped" in balance)
    histograms = run.browser.see("[...document.querySelectorAll('#latency h3')].map((title) => title.textContent)")
    check(f"histograms of {histograms}", histograms == ["veto", "peaks", "integrate", "total", "gaps"])
    past = run.ask("history.json")
    check("the run is not noted", len(past["notes"]) > 2)


def fits(size, scheme):
    return lambda run: anypage.fits(run, size, scheme, "frames")


ROWS = [
    ("loads", anypage.loads),
    ("image is drawn", image_is_drawn),
    ("peaks are marked", peaks_are_marked),
    ("pointer tells the value", pointer_tells_the_value),
    ("image zooms", zooms),
    ("colours can be chosen", colours_can_be_chosen),
    ("projections", projections),
    ("live goes on", live_goes_on),
    ("curve is drawn", curve_is_drawn),
    ("image counters move", counters_move),
    *((f"{scheme}, {name}", fits(size, scheme))
      for size, name in ((PHONE, "phone"), (LAPTOP, "laptop")) for scheme in ("dark", "light")),
    ("names everything", anypage.names_everything),
    ("is silent", anypage.is_silent),
    ("ends", anypage.ends),
]
