"""What the pages of all programs have to hold, and how one is opened."""

import json
import re

from lib.testbed import check

LAPTOP, PHONE = (1280, 800), (390, 844)

# The contrast of each text with its background (WCAG 2.2, "contrast ratio"), the least first.
CONTRAST = """(() => {
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => numbers(colour).slice(0, 3).map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (; element; element = element.parentElement) {
            const { backgroundColor } = getComputedStyle(element);
            if (numbers(backgroundColor)[3] !== 0) return backgroundColor;
        }
        return "rgb(255, 255, 255)";
    };
    const texts = [...document.querySelectorAll("h1, h2, h3, p, dt, dd, th, td, button, figcaption, caption, a, strong, label")];
    return texts.filter((e) => e.textContent.trim() && e.offsetParent && !e.disabled).map((e) => {
        const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
        return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 80)];
    }).sort(([a], [b]) => a - b)[0];
})()"""


def open_page(trigger, browser):
    found = re.compile(r"the run page is at (http://\S+)")
    trigger.until("no page is served", lambda: found.search(trigger.complained()))
    url = found.search(trigger.complained()).group(1)
    browser.size(*LAPTOP)
    browser.scheme("light")
    browser.call("Page.navigate", url=url)
    # A browser that has just started still has its first page for a while.
    browser.until("the page is not loaded",
                  f"location.href === {json.dumps(url)} && document.readyState === 'complete'")
    return url


def loads(run):
    browser = run.browser
    browser.until("the program is not heard", "document.getElementById('state').textContent.includes('up for')")
    foreign = [url for url in browser.asked if not url.startswith((run.url, "data:"))]
    check(f"asks others: {foreign}", not foreign)
    check("asks for no counters", run.url + "run.json" in browser.asked)


def fits(run, size, scheme, table):
    """The page on a window of this size. `table` has rows."""
    browser = run.browser
    phone = size == PHONE
    browser.size(*size, phone)
    browser.scheme(scheme)
    browser.until("the width stays", f"window.innerWidth === {size[0]}")
    wide = browser.see("document.documentElement.scrollWidth")
    check(f"{wide} of {size[0]} pixels wide", wide <= size[0])
    # Nothing has to be scrolled to be seen, and all of it has a name.
    cut = browser.see("[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)"
                      ".map((e) => e.querySelector('tbody').id)")
    check(f"tables are cut off: {cut}", not cut)
    named = browser.see(f"[...document.querySelectorAll('#{table} td')].map((cell) => "
                        "getComputedStyle(cell, '::before').content)")
    check(f"columns are called {named[:6]}", named and all((name == "none") != phone for name in named))
    dark = browser.see("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
    check("the wrong colours", dark == (scheme == "dark"))
    least, where = browser.see(CONTRAST)
    check(f"a contrast of {least:.2f}: {where}", least >= 4.5)
    small = browser.see("[...document.querySelectorAll('button, select, input')].map((e) => e.getBoundingClientRect())"
                        ".filter((box) => box.width < 24 || box.height < 24).length")
    check(f"{small} controls are too small for a finger", small == 0)


def names_everything(run):
    run.browser.call("Accessibility.enable")
    nodes = run.browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "combobox", "img", "image", "region", "link", "toolbar")
    of_kind = [node for node in nodes if not node["ignored"] and node["role"].get("value") in roles]
    nameless = [node["role"]["value"] for node in of_kind if not node.get("name", {}).get("value")]
    check(f"without a name: {nameless}", of_kind and not nameless)


def is_silent(run):
    check(f"on the console: {run.browser.console}", not run.browser.console)


def ends(run):
    """Last: the run ends in order, and the page shows it."""
    run.trigger.interrupt()
    check(f"status: {run.trigger.complained()}", run.trigger.wait() == 0)
    run.browser.until("the page does not notice", "document.getElementById('state').className === 'lost'")
