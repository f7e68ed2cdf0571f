"""The run page in a browser: what its tests share, and those of its numbers: what is so now, and what
was before."""

import json
import signal
import socket
import time
import urllib.request
from datetime import UTC, datetime

from lib import testbed
from lib.testbed import check

# Seconds for which the program is stopped so that decisions are late; and those that the page calls
# now, with as many for what it asks.
STOPPED, NOW = 0.3, 5
# How far apart a drawn and a true length may be, in mm: texts have six digits.
EXACT = 1e-3

# The circles of a class on both disks: disk, x, y, r.
CIRCLES = """[0, 1].flatMap((disk) => [...document.querySelectorAll(`#disk${disk} circle.CLASS`)]
    .map((circle) => [disk, ...["cx", "cy", "r"].map((name) => Number(circle.getAttribute(name)))]))"""


class Run:
    """The trigger, and the browser on its page."""

    def __init__(self, trigger, config, browser, url):
        self.trigger, self.config, self.browser, self.url = trigger, config, browser, url

    def cells(self, rows):
        """The texts of a table's body, row by row."""
        return self.browser.see(f"[...document.querySelectorAll('#{rows} tr')]"
                                ".map((row) => [...row.cells].map((cell) => cell.textContent))")

    def ask(self, path):
        with urllib.request.urlopen(self.url + path, timeout=testbed.PATIENCE) as answer:
            return json.load(answer)

    def click(self, button):
        self.browser.see(f"document.getElementById('{button}').click()")

    def press(self, key, on):
        self.browser.see(f"document.getElementById('{on}').dispatchEvent("
                         f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))")

    def choose(self, kind):
        """Shows all events, or those of a kind."""
        self.browser.see(f"document.getElementById('filter').value = '{kind}';"
                         "document.getElementById('filter').dispatchEvent(new Event('change'))")

    def number(self):
        """The number of the event that is shown."""
        return int(self.browser.see("document.getElementById('caption').dataset.number") or 0)

    def circles(self, kind):
        return self.browser.see(CIRCLES.replace("CLASS", kind))

    def pause(self):
        """Stops at an event, with others before it."""
        self.browser.until("no events are shown", "!document.getElementById('previous').disabled")
        if self.browser.see("document.getElementById('live').getAttribute('aria-pressed')") == "true":
            self.click("live")


def names_the_run(run):
    def about():
        return run.browser.see("[...document.querySelectorAll('#about div')].map((item) => item.innerText.split('\\n'))")

    host = socket.gethostname()
    title = run.browser.see("document.title")
    check(f"title: {title}", title == f"{host}: L0 trigger (Pollux)")
    told = dict(about())
    started = datetime.fromtimestamp(run.ask("run.json")["about"]["started_unix_s"], UTC)
    check(f"about: {told}", told == {"Host": host, "Started": f"{started:%Y-%m-%d %H:%M:%S} UTC",
                                     "Configuration": str(run.config), "Port": "loopback"})
    check("it was started at another time", 0 <= time.time() - started.timestamp() < 300)
    run.browser.see("now.about.run = 17; showRun()")
    check(f"the number of the run: {about()}", dict(about()).get("Run") == "17")


def tile(name):
    """The tile of a name: its value, the text below it, and its class."""
    return f"""(() => {{
        const tile = [...document.querySelectorAll('#now div')].find((tile) => tile.firstChild.textContent === '{name}');
        return [...[...tile.querySelectorAll('dd')].map((text) => text.textContent), tile.className];
    }})()"""


def counters_move(run):
    run.browser.until("no rate", f"Number.parseFloat({tile('Events/s')}[0]) > 0")
    before = run.ask("run.json")
    balance = "document.getElementById('balance').textContent"
    first = run.browser.see(balance)
    run.browser.until("the counters stand still", f"{balance} !== {json.dumps(first)}")
    after = run.ask("run.json")
    check("the events stand still", after["events"]["built"] > before["events"]["built"])
    check("the clock stands still", after["uptime_s"] > before["uptime_s"])
    rows = run.browser.see("document.querySelectorAll('#streams tr').length")
    check(f"{rows} streams are shown", rows == len(after["streams"]))
    charts = run.browser.see("[...document.querySelectorAll('#latency h3')].map((h) => h.textContent)")
    check(f"histograms of {charts}", charts == [h["stage"] for h in after["histograms"]] and "total" in charts)
    bars = run.browser.see("document.querySelectorAll('#latency rect').length")
    kinds = sum(n > 0 for h in after["histograms"] for _, n in h["octaves"])
    check(f"{bars} bars of {kinds}", 0 < bars <= kinds)
    # The budget, next to the latency and in its plot.
    _, below, _ = run.browser.see(tile("Latency p99.99"))
    check(f"the latency: {below}", below.startswith("budget 200 ms; "))
    words = run.browser.see("[...document.querySelectorAll('#latency text')].map((text) => text.textContent)")
    check(f"the histograms: {words}", "budget 200 ms" in words)


def rates_are_of_now(run):
    """Of the last seconds, whatever the run was before; and beside them what it was in all."""
    run.browser.until("no window", f"before && now.uptime_s - before.uptime_s >= {NOW}")
    told, below, _, true, built, window = run.browser.see(
        f"[...{tile('Events/s')}, rate((run) => run.events.built), now.events.built, now.uptime_s - before.uptime_s]")
    factor = {"k": 1e3, "M": 1e6}.get(told.split()[-1], 1)
    check(f"{told} is not {true}", abs(float(told.split()[0]) * factor - true) <= 0.06 * factor)
    check(f"{below} of {built}", below.endswith(" in all") and built > 0)
    check(f"a window of {window} s", NOW <= window <= 2 * NOW)


def minute_fills_from_the_right(run):
    """With a run of seconds, the newest is at the right edge and the left is empty."""
    width, first, last, ticks, newest = run.browser.see("""(() => {
        const kept = minute;
        const notes = Array.from({length: 11}, (_, i) => ({...kept.notes.at(-1), uptime_s: i, events: 100 * i}));
        minute = {...kept, notes};
        showRates();
        const svg = document.querySelector('#minute svg');
        const box = svg.querySelector('.line').getBBox();
        const told = [svg.viewBox.baseVal.width, box.x, box.x + box.width,
            [...svg.querySelectorAll('text')].map((text) => text.textContent), svg.getAttribute('aria-label')];
        minute = kept;
        showRates();
        return told;
    })()""")
    check(f"from {first} to {last} of {width}", abs(last - width) < EXACT and abs(first - width * 50 / 60) < EXACT)
    check(f"the axis: {ticks}", ticks == ["100/s", "60 s ago", "45", "30", "15", "now"])
    check(f"told as {newest}", newest.startswith("Events, last minute: now built 100/s"))
    # The whole run, from its start to now.
    first, last, ticks = run.browser.see("""(() => {
        const svg = document.querySelector('#past svg');
        const box = svg.querySelector('.line').getBBox();
        return [box.x, box.x + box.width, [...svg.querySelectorAll('text')].slice(1).map((text) => text.textContent)];
    })()""")
    check(f"the run is from {first} to {last}", first < width / 10 and abs(last - width) < EXACT)
    started = datetime.fromtimestamp(run.ask("run.json")["about"]["started_unix_s"], UTC)
    check(f"the axis of the run: {ticks}", ticks[0] == f"{started:%H:%M:%S}" and ticks[2].endswith(" UTC"))
    past = run.ask("history.json")
    check("the run is not noted", len(past["notes"]) > 2 and past["every_s"] == 1)


def red_ends(run):
    """Decisions that were late are red while they are, and no longer."""
    late = tile("Late decisions/s")
    run.browser.until("late before the test", f"{late}[2] === ''")
    before = run.ask("run.json")["deadline"]["late_decisions"]
    # Frames that are under way meanwhile are late. At most stops none is: a frame takes some
    # microseconds, and the next one is sent much later. Up to 27 stops were needed.
    for _ in range(150):
        run.trigger.signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        run.trigger.signal(signal.SIGCONT)
        time.sleep(0.05)
        if run.ask("run.json")["deadline"]["late_decisions"] > before:
            break
    run.browser.until("late decisions are not red", f"{late}[2] === 'bad'")
    after = run.ask("run.json")["deadline"]["late_decisions"]
    check("no decision was late", after > before)
    run.browser.until("red for ever", f"{late}[2] === ''")
    value, below, _ = run.browser.see(late)
    check(f"late: {value}, {below}", value == "0" and int(below.split()[0].split(".")[0]) > 0)
    shown = run.browser.see("[...document.querySelectorAll('#minute h3')].map((h) => h.textContent)")
    check(f"plots of {shown}", "Faults, last minute" in shown)
    peak = run.browser.see("document.querySelectorAll('#minute svg')[2].querySelector('text').textContent")
    check(f"the minute forgot it: {peak}", not peak.startswith("0"))


def drops_are_shown(run):
    """What is under way is not lost. What is dropped now is red, what was dropped before is not; and
    when it was is in the plot."""
    looked = """(() => {
        const kept = [now, before, minute];
        const of = (run, dropped) => ({...run, ledger: {...run.ledger, from_wire: 100, delivered: 70, dropped}});
        now = of(now, {late: 9, corrupt: 2});
        before = {...of(now, BEFORE), uptime_s: now.uptime_s - 5};
        const notes = Array.from({length: 61}, (_, i) => ({...minute.notes.at(-1), uptime_s: i,
            dropped: {...(i > 20 ? {late: 4} : {}), ...(i > 40 ? {late: 9, corrupt: 2} : {})}}));
        minute = {...minute, notes};
        showTiles();
        showDrops();
        const cells = (row) => [...row.cells].map((cell) => cell.textContent);
        const told = [TILE, document.getElementById('balance').textContent,
            [...document.querySelectorAll('#drops tr')].map(cells),
            [...document.querySelectorAll('#drops .bad')].map((cell) => cell.parentElement.cells[0].textContent),
            [...document.querySelectorAll('#drop-plot .line')].map((line) => line.getAttribute('class')),
            document.querySelector('#drop-plot svg').getAttribute('aria-label')];
        [now, before, minute] = kept;
        return told;
    })()""".replace("TILE", tile("Dropped/s"))
    told, balance, drops, red, lines, picture = run.browser.see(looked.replace("BEFORE", "{late: 4, corrupt: 2}"))
    check(f"dropped: {told}", told == ["1", "11 in all", "bad"])
    check(balance, balance == "100 frames from the wire = 70 delivered + 11 dropped + 19 under way.")
    check(f"drops: {drops}", drops == [["late", "9", "9", "1"], ["corrupt", "2", "2", "0"]])
    check(f"red: {red}", red == ["late"])
    check(f"lines: {lines}, {picture}", lines == ["line c0", "line c1"] and "late 0/s, corrupt 0/s" in picture)
    told, _, _, red, _, _ = run.browser.see(looked.replace("BEFORE", "{late: 9, corrupt: 2}"))
    check(f"dropped long ago: {told}, {red}", told == ["0", "11 in all", ""] and red == [])


def faults_are_of_now(run):
    """A board that was wrong, and is not any more, is named, but not in red."""
    told = run.browser.see("""(() => {
        const kept = now;
        now = {...now, streams: now.streams.map((stream) => ({...stream, missing: 7, faults: ['clock', 'loss']})),
            now: {...now.now, faults: now.streams.map((_, i) => (i ? [] : ['loss']))}};
        before = {...before, streams: before.streams.map((stream, i) => ({...stream, missing: i ? 7 : 5}))};
        showStreams();
        const told = [...document.querySelectorAll('#streams tr')].slice(0, 2).map((row) =>
            [4, 7].flatMap((n) => [row.cells[n].textContent, row.cells[n].className]));
        now = kept;
        return told;
    })()""")
    check(f"streams: {told}", told == [["7", "bad", "loss; earlier: clock", "bad"], ["7", "", "earlier: clock, loss", ""]])
