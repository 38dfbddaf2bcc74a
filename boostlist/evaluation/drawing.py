"""A drawing: what to put on Matplotlib axes, in whose colours, and how large; drawn as SVG for the page or as it is.

The SVG of the page is drawn in marker colours, which become CSS variables; so one drawing serves the light page, the
dark page and the printed one. Text stays text: it can be selected, and takes the page's font.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from boostlist.evaluation.palette import Palette, markers

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_LINES = re.compile(r"model\d+")
_PHONE = 264.0


@dataclass(frozen=True)
class Drawing:
    """A figure that is still to be drawn.

    Attributes
    ----------
    name
        Put before every id, so that ids on the page are different.
    title
        What it shows, for those who cannot see it.
    height
        In points.
    draw
        Draws on axes, in the colours of a palette.
    width
        In points; the page scales it.
    rows
        Whether it has a row for each of several names, which on a phone stand above their rows.
    """

    name: str
    title: str
    height: float
    draw: Callable[[Axes, Palette], None]
    width: float = 370.0
    rows: bool = False

    def on(self, axes: Axes | None, palette: Palette) -> Axes:
        """Draw on axes, by default those of a new figure of pyplot, and return them."""
        with matplotlib.rc_context(_style(palette)):
            if axes is None:
                from matplotlib import pyplot

                figure = pyplot.figure(figsize=(self.width / 60, self.height / 60), layout="constrained")
                axes = figure.add_subplot()
            self.draw(axes, palette)
        return axes

    def svg(self, models: int) -> str:
        """Return an SVG element for the page, where `models` models have colours."""
        return self._svg(models, self.width, self.height, self.name)

    def narrow_svg(self, models: int) -> str:
        """Return an SVG element for a phone: text is as large as elsewhere, the rest is drawn smaller."""
        return self._svg(models, _PHONE, (1.6 if self.rows else 1) * self.height, f"{self.name}-narrow")

    def _svg(self, models: int, width: float, height: float, name: str) -> str:
        palette = markers(models)
        with matplotlib.rc_context(_style(palette)):
            figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
            FigureCanvasSVG(figure)
            self.draw(figure.add_subplot(), palette)
            buffer = io.StringIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        variables = {colour: name for name, colour in palette.variables().items()}
        return _themed(buffer.getvalue(), name, self.title, variables)


def is_narrow(axes: Axes) -> bool:
    """Whether axes are to be seen on a phone."""
    return float(axes.figure.bbox.width) / axes.figure.dpi * 72 <= _PHONE


def dashes(index: int) -> str:
    """Return the line style of a model by its position in the panel: solid for the first ten, then others."""
    return ("-", "--", ":", "-.")[index // 10 % 4]


def _style(palette: Palette) -> Any:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "boostlist",
        "text.parse_math": False,  # a name may have dollar signs
        "font.size": 9.5,
        "axes.labelsize": 9.5,
        "axes.titlesize": 10,
        "axes.edgecolor": palette.grid,
        "axes.labelcolor": palette.muted,
        "axes.facecolor": "none",
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": palette.grid,
        "grid.linewidth": 0.6,
        "text.color": palette.ink,
        "xtick.color": palette.grid,
        "ytick.color": palette.grid,
        "xtick.labelcolor": palette.muted,
        "ytick.labelcolor": palette.muted,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "lines.linewidth": 1.8,
        "lines.solid_capstyle": "round",
        "figure.facecolor": "none",
    }


def _themed(text: str, name: str, title: str, variables: dict[str, str]) -> str:
    """Return Matplotlib's SVG as an element of the page.

    It is parsed and written anew: what a text says is never taken for markup, here or in the page.
    """
    svg = ElementTree.fromstring(text)
    for metadata in svg.findall(f"{{{_SVG}}}metadata"):
        svg.remove(metadata)
    for element in svg.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        element.attrib = {key: _themed_value(value, name, variables) for key, value in element.attrib.items()}
        if _HREF in element.attrib:
            element.set("href", f"#{name}-{element.attrib.pop(_HREF).removeprefix('#')}")
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


def _themed_value(value: str, name: str, variables: dict[str, str]) -> str:
    value = re.sub(r"url\(#", f"url(#{name}-", value)
    value = re.sub(r"font: ([\d.]+)px [^;]*", r"font-size: \1px", value)
    value = re.sub(r"font-family: [^;]*;? ?", "", value)
    return re.sub(r"#f[ef][0-9a-f]{4}", lambda found: f"var(--{variables[found[0]]})", value)
