"""Small pictures for the examples, written as SVG without a plotting library: the same numbers give
the same file.
"""

from __future__ import annotations

import math
from html import escape

import numpy as np

BLUE, ORANGE, GREEN, PURPLE, GREY = "#1f6feb", "#d1570a", "#1a7f37", "#8250df", "#57606a"
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 34, 44  # room around the axes


class Plot:
    """Axes from `x[0]` to `x[1]` and from `y[0]` to `y[1]`, on which lines and points are drawn."""

    def __init__(self, title, x, y, x_label="", y_label="", width=640, height=360):
        self.title, self.x, self.y = title, x, y
        self.width, self.height = width, height
        self.parts, self.names = [], []
        self._axes(x_label, y_label)

    def at(self, x, y):
        """Where points are on the picture, as pairs of words."""
        x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        px = LEFT + across * (self.width - LEFT - RIGHT)
        py = self.height - BOTTOM - up * (self.height - TOP - BOTTOM)
        return [(f"{a:.1f}", f"{b:.1f}") for a, b in zip(px.ravel(), py.ravel())]

    def line(self, x, y, colour=BLUE, name=None, dashes="", width=2):
        pairs = " ".join(",".join(p) for p in self.at(x, y))
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(
            f'<polyline points="{pairs}" fill="none" stroke="{colour}" '
            f'stroke-width="{width}"{dashed}/>'
        )
        return self._named(name, colour)

    def points(self, x, y, colour=ORANGE, name=None, size=3):
        for px, py in self.at(x, y):
            self.parts.append(f'<circle cx="{px}" cy="{py}" r="{size}" fill="{colour}"/>')
        return self._named(name, colour)

    def bars(self, x, low, high, colour=ORANGE):
        """An upright line at each x, from low to high: errors."""
        for (px, p), (_, q) in zip(self.at(x, low), self.at(x, high)):
            self.parts.append(f'<path d="M{px} {p}V{q}" stroke="{colour}" stroke-width="1.5"/>')
        return self

    def band(self, x, low, high, colour=BLUE, name=None):
        """The area between two curves."""
        there, back = self.at(x, low), self.at(x, high)[::-1]
        pairs = " ".join(",".join(p) for p in there + back)
        self.parts.append(f'<polygon points="{pairs}" fill="{colour}" fill-opacity="0.18"/>')
        return self._named(name, colour)

    def svg(self):
        legend, place = [], LEFT + 8
        for name, colour in self.names:
            legend.append(f'<rect x="{place}" y="16" width="12" height="4" fill="{colour}"/>')
            legend.append(_text(place + 16, 22, name, "start"))
            place += 32 + 6.6 * len(name)
        return _document(self.width, self.height, self.title, [*self.parts, *legend])

    def _named(self, name, colour):
        if name:
            self.names.append((name, colour))
        return self

    def _axes(self, x_label, y_label):
        low, high = self.height - BOTTOM, self.width - RIGHT
        for value in _ticks(*self.x):
            px = self.at(value, self.y[0])[0][0]
            self.parts.append(f'<path d="M{px} {TOP}V{low}" stroke="#d8dee4"/>')
            self.parts.append(_text(px, low + 16, f"{value:g}"))
        for value in _ticks(*self.y):
            py = self.at(self.x[0], value)[0][1]
            self.parts.append(f'<path d="M{LEFT} {py}H{high}" stroke="#d8dee4"/>')
            self.parts.append(_text(LEFT - 6, float(py) + 4, f"{value:g}", "end"))
        self.parts.append(_text((LEFT + high) / 2, self.height - 8, x_label))
        turn = f' transform="rotate(-90 14 {(TOP + low) / 2:g})"'
        self.parts.append(_text(14, (TOP + low) / 2, y_label, more=turn))


def images(title, pictures, columns, pixel=6, gap=4):
    """Grey pictures [n, height, width] with values from 0 to 1, in rows of `columns`."""
    n, height, width = pictures.shape
    levels = {}  # one path for each of 16 greys
    for i, picture in enumerate(pictures):
        row, column = divmod(i, columns)
        top, left = row * (height * pixel + gap) + gap, column * (width * pixel + gap) + gap
        greys = np.clip(np.round(picture * 15), 0, 15).astype(int)
        for (y, x), grey in np.ndenumerate(greys):
            place = f"M{left + x * pixel} {top + y * pixel + pixel // 2}h{pixel}"
            levels.setdefault(int(grey), []).append(place)
    parts = [
        f'<path d="{"".join(levels[g])}" stroke="#{f"{g:x}" * 3}" stroke-width="{pixel}"/>'
        for g in sorted(levels)
    ]
    size = lambda count, each: count * (each * pixel + gap) + gap
    return _document(size(columns, width), size(-(-n // columns), height), title, parts)


def table(head, rows):
    """A table of words in Markdown; the first column is on the left, the others on the right."""
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    cells = lambda line: " | ".join(
        word.rjust(width) if i else word.ljust(width)
        for i, (word, width) in enumerate(zip(line, widths))
    )
    rule = "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths))
    return "\n".join([f"| {cells(head)} |", f"|{rule}|", *(f"| {cells(row)} |" for row in rows)])


def _ticks(low, high):
    """About five round numbers between two others."""
    size = 10 ** math.floor(math.log10((high - low) / 4))
    step = next(size * m for m in (1, 2, 5, 10) if (high - low) / (size * m) <= 6)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _text(x, y, words, anchor="middle", more=""):
    place = f'x="{float(x):.1f}" y="{float(y):.1f}" text-anchor="{anchor}"'
    return f"<text {place}{more}>{escape(words)}</text>" if words else ""


def _document(width, height, title, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-family="sans-serif" font-size="12" '
        f'fill="{GREY}"><title>{escape(title)}</title>'
    )
    paper = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, paper, *filter(None, parts), "</svg>"]) + "\n"
