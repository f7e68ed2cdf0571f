"""Plots as SVG, written by hand: a handful of shapes."""

from math import floor, log2, log10

# The plane inside the axes.
LEFT, RIGHT, TOP, BOTTOM = 70, 600, 30, 330
MOST_NS = 9000
# Published for NaNet-10: below 1 us up to about 1 KB. A link carries 10 or 1 bit in a nanosecond.
BAR = (1024, 1000)
LINKS = {"10GbE": 0.8, "GbE": 8.0}
HEADERS = 8 + 42 + 4


def latency_plot(rows, by_pcs, pcie):
    """Latency by size of the payload, logarithmic, without and with the PCS, with its lower bounds."""
    sizes = [row["payload"] for row in rows]
    x = lambda size: LEFT + (RIGHT - LEFT) * log2(size / sizes[0]) / log2(sizes[-1] / sizes[0])  # noqa: E731
    y = lambda ns: BOTTOM - (BOTTOM - TOP) * min(ns, MOST_NS) / MOST_NS  # noqa: E731

    def curve(points, colour, dash=""):
        places = " ".join(f"{x(size):.1f},{y(ns):.1f}" for size, ns in points if ns <= MOST_NS)
        return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'

    def text(at_x, at_y, words, anchor="start"):
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{words}</text>'

    wire = {name: [(size, max(size + HEADERS, 72) * per) for size in sizes] for name, per in LINKS.items()}
    ours = [(row["payload"], row["most_ns"] + pcie) for row in by_pcs]
    bus = [(row["payload"], row["most_ns"]) for row in rows]
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="800" height="390" font-family="sans-serif" font-size="12">',
             '<rect width="800" height="390" fill="white"/>',
             f'<path d="M{LEFT} {TOP} V{BOTTOM} H{RIGHT}" fill="none" stroke="black"/>']
    for size in sizes:
        parts.append(text(x(size), BOTTOM + 16, size, "middle"))
    for ns in range(0, MOST_NS + 1, 1000):
        parts.append(text(LEFT - 6, y(ns) + 4, f"{ns / 1000:.0f}", "end"))
    parts += [text((LEFT + RIGHT) / 2, BOTTOM + 40, "payload, B", "middle"), text(10, TOP - 10, "latency, us"),
              curve(wire["GbE"], "#cc79a7", "4 3"), curve(wire["10GbE"], "#009e73", "4 3"), curve(bus, "#56b4e9"),
              curve(ours, "#0072b2"),
              f'<path d="M{x(sizes[0]):.1f} {y(BAR[1]):.1f} H{x(BAR[0]):.1f} V{BOTTOM}" fill="none" stroke="#d55e00" '
              'stroke-width="2"/>']
    legend = [("#0072b2", f"PCS to memory, PCIe {pcie:.0f} ns"), ("#56b4e9", "MAC to the host bus"),
              ("#d55e00", "NaNet-10: below 1 us to 1 KB"), ("#009e73", "a 10GbE link alone"),
              ("#cc79a7", "a GbE link alone (NaNet-1)")]
    for place, (colour, words) in enumerate(legend):
        at = TOP + 20 + 20 * place
        parts += [f'<path d="M{RIGHT + 10} {at - 4} h20" stroke="{colour}" stroke-width="2"/>',
                  text(RIGHT + 35, at, words)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def ratio_plot(rows):
    """Bars of the ratio of each row to its peer, logarithmic, with both values beside them, and the bar that is set."""
    rows = [row for row in rows if row.get("ratio")]
    most = 2 ** max(1, *(int(log2(row["ratio"])) + 1 for row in rows))
    least, left, right, step = 0.5, 200, 560, 34
    bottom = TOP + step * len(rows)
    x = lambda ratio: left + (right - left) * log2(max(ratio, least) / least) / log2(most / least)  # noqa: E731

    def text(at_x, at_y, words, anchor="start"):
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{words}</text>'

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="{bottom + 50}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="800" height="{bottom + 50}" fill="white"/>']
    tick = least
    while tick <= most:
        colour = "black" if tick == 1 else "#cccccc"
        parts += [f'<path d="M{x(tick):.1f} {TOP} V{bottom}" stroke="{colour}"/>',
                  text(x(tick), bottom + 16, f"{tick:g}", "middle")]
        tick *= 2
    for place, row in enumerate(rows):
        at = TOP + step * place
        low, high = sorted((x(1), x(row["ratio"])))
        parts += [f'<rect x="{low:.1f}" y="{at + 6}" width="{high - low:.1f}" height="{step - 14}" '
                  f'fill="{"#0072b2" if row["ratio"] >= 1 else "#cc79a7"}"/>',
                  text(left - 8, at + step / 2 + 3, row["name"], "end"),
                  text(right + 10, at + step / 2 + 3,
                       f"{row['ratio']:.2f}: {row['ours']:.3g} to {row['peer']:.3g} {row['unit'].split()[0]}")]
        if "bar" in row:
            bar = x(row["bar"]["ratio"])
            parts.append(f'<path d="M{bar:.1f} {at + 3} V{at + step - 5}" stroke="#d55e00" stroke-width="2"/>')
    parts += [text((left + right) / 2, bottom + 38, "times its peer, one core; orange: the bar", "middle")]
    return "\n".join([*parts, "</svg>"]) + "\n"


COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]


def curves_plot(across, up, series):
    """Curves, linear in both directions from 0. `series` is a list of (name, [(x, y)])."""
    def steps(most):
        """The distance of at most ten marks that reach a value, a round number."""
        step = 10 ** floor(log10(most) - 1)
        return next(step * factor for factor in (1, 2, 5, 10, 20, 50, 100) if step * factor * 10 >= most)

    most_x = max(x for _, points in series for x, _ in points)
    most_y = max(y for _, points in series for _, y in points)
    x = lambda value: LEFT + (RIGHT - LEFT) * value / most_x  # noqa: E731
    y = lambda value: BOTTOM - (BOTTOM - TOP) * value / most_y  # noqa: E731

    def text(at_x, at_y, words, anchor="start"):
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{words}</text>'

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="800" height="390" font-family="sans-serif" font-size="12">',
             '<rect width="800" height="390" fill="white"/>',
             f'<path d="M{LEFT} {TOP} V{BOTTOM} H{RIGHT}" fill="none" stroke="black"/>',
             text((LEFT + RIGHT) / 2, BOTTOM + 40, across, "middle"), text(10, TOP - 10, up)]
    for most, place in ((most_x, lambda value: text(x(value), BOTTOM + 16, f"{value:g}", "middle")),
                        (most_y, lambda value: text(LEFT - 6, y(value) + 4, f"{value:g}", "end"))):
        step = steps(most)
        parts += [place(round(step * n, 9)) for n in range(int(most / step) + 1)]
    for number, (name, points) in enumerate(series):
        colour, at = COLOURS[number % len(COLOURS)], TOP + 20 + 20 * number
        places = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts += [f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>',
                  *(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="3" fill="{colour}"/>' for a, b in points),
                  f'<path d="M{RIGHT + 10} {at - 4} h20" stroke="{colour}" stroke-width="2"/>',
                  text(RIGHT + 35, at, name)]
    return "\n".join([*parts, "</svg>"]) + "\n"
