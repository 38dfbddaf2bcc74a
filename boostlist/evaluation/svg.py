"""Matplotlib figures as inline SVG whose colours and font are the page's.

Figures are drawn in marker colours, which become CSS variables in the SVG; so one drawing serves the light page, the
dark page and the printed one. Text stays text: it can be selected, and takes the page's font.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

SERIES = 10
"""Number of colours for models; the page's style sheet has --s0 to --s9."""

INK, MUTED, GRID, SURFACE, GOOD, BAD = (f"#fe01{i:02x}" for i in range(6))
_VARIABLES = dict(
    zip((INK, MUTED, GRID, SURFACE, GOOD, BAD), ("ink", "muted", "grid", "surface", "good", "bad"), strict=True)
) | {f"#fe00{i:02x}": f"s{i}" for i in range(SERIES)}

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_LINES = re.compile(r"m\d+")

_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may have dollar signs
    "svg.hashsalt": "boostlist",
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "axes.titlesize": 10,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.facecolor": "none",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "none",
}


def series(index: int) -> str:
    """Return the marker colour of a model by its position in the panel."""
    return f"#fe00{index % SERIES:02x}"


def dashes(index: int) -> str:
    """Return the line style of a model: solid for the first ten, others where the colours come again."""
    return ("-", "--", ":", "-.")[index // SERIES % 4]


def drawn(name: str, width: float, height: float, draw: Callable[[Figure], None], title: str) -> str:
    """Return a figure as an SVG element.

    Parameters
    ----------
    name
        Put before every id, so that ids on the page are different.
    width, height
        In points; the page scales it.
    draw
        Draws on the figure.
    title
        What the figure shows, for those who cannot see it.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return _themed(buffer.getvalue(), name, title)


def _themed(text: str, name: str, title: str) -> str:
    """Return matplotlib's SVG as an element of the page.

    It is parsed and written anew: what a text says is never taken for markup, here or in the page.
    """
    svg = ElementTree.fromstring(text)
    for metadata in svg.findall(f"{{{_SVG}}}metadata"):
        svg.remove(metadata)
    for element in svg.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        element.attrib = {key: _themed_value(key, value, name) for key, value in element.attrib.items()}
        # A model's lines, of which there may be several, are marked by a class; other ids stay ids.
        if _LINES.fullmatch(element.get("id", "")):
            element.set("class", element.attrib.pop("id"))
        elif "id" in element.attrib:
            element.set("id", f"{name}-{element.get('id')}")
        if element.tag != "text" and element.text is not None:
            element.text = element.text.strip()
        element.tail = "\n"
    svg.attrib = {"viewBox": svg.attrib["viewBox"], "role": "img", "aria-label": title, "id": name}
    return ElementTree.tostring(svg, encoding="unicode").strip()


def _themed_value(key: str, value: str, name: str) -> str:
    value = re.sub(r"url\(#", f"url(#{name}-", value)
    if key == _HREF:
        return f"#{name}-{value.removeprefix('#')}"
    value = re.sub(r"font: ([\d.]+)px [^;]*", r"font-size: \1px", value)
    value = re.sub(r"font-family: [^;]*;? ?", "", value)
    return re.sub(r"#fe0[01][0-9a-f]{2}", lambda found: f"var(--{_VARIABLES[found[0]]})", value)
