"""Colours: of the page, light and dark, and of as many models as there are, each with one of its own.

The first ten are chosen by hand. Each further one is that of a fixed set which is furthest from those before it, so
that a panel of any size has colours as different as can be; a model keeps its colour when models are added behind it.
"""

from __future__ import annotations

import colorsys
import itertools
import math
from dataclasses import dataclass
from functools import cache

_FIRST = (
    ("#2a6fdb", "#6ba4ff"),
    ("#de6b1f", "#ff9a56"),
    ("#1f9a67", "#4cc997"),
    ("#c13f80", "#f07fb4"),
    ("#8256d0", "#b494ff"),
    ("#ab8207", "#ddb53c"),
    ("#1090b0", "#4cc4e2"),
    ("#c4453a", "#ff8174"),
    ("#5d7f2a", "#a3c465"),
    ("#8a6555", "#c9a08e"),
)
_HUES = 30
_SHADES = ((0.28, 0.82), (0.40, 0.70), (0.52, 0.58))
"""Lightness of further colours on a light page and, of the same hue, on a dark one."""


@dataclass(frozen=True)
class Palette:
    """Colours of a drawing; `models` has one for each model of the panel."""

    ink: str
    muted: str
    grid: str
    surface: str
    good: str
    bad: str
    models: tuple[str, ...]

    def variables(self) -> dict[str, str]:
        """Return the colours by the names that the page's style sheet has for them."""
        named = {name: getattr(self, name) for name in ("ink", "muted", "grid", "surface", "good", "bad")}
        return named | {f"s{i}": colour for i, colour in enumerate(self.models)}


def light(count: int) -> Palette:
    """Return the colours of a light page for a number of models."""
    models = tuple(on_light for on_light, _ in _models(count))
    return Palette("#171a21", "#5d6573", "#dfe3e9", "#ffffff", "#1f8f63", "#c8493c", models)


def dark(count: int) -> Palette:
    """Return the colours of a dark page, in which a model has the hue that it has on a light one."""
    models = tuple(on_dark for _, on_dark in _models(count))
    return Palette("#e7eaf0", "#9da6b5", "#2d3440", "#171b22", "#3fbf8c", "#ec7466", models)


def markers(count: int) -> Palette:
    """Return colours that stand for those of the page, which puts its own in their place."""
    ink, muted, grid, surface, good, bad = (f"#fe{i:04x}" for i in range(6))
    return Palette(ink, muted, grid, surface, good, bad, tuple(f"#ff{i:04x}" for i in range(count)))


@cache
def _models(count: int) -> list[tuple[str, str]]:
    """Return colours for a light and a dark page; after the first, each is far from those before it."""
    candidates = [tuple(_hex(hue / _HUES, each) for each in shade) for shade in _SHADES for hue in range(_HUES)]
    chosen = list(_FIRST[:count])
    while len(chosen) < count:
        left = [(light, dark) for light, dark in candidates if (light, dark) not in chosen] or list(_FIRST)
        chosen.append(max(left, key=lambda each: min(map(_apart, itertools.repeat(each), chosen))))
    return chosen


def _apart(first: tuple[str, str], second: tuple[str, str]) -> float:
    return min(distance(*on_one_page) for on_one_page in zip(first, second, strict=True))


def _hex(hue: float, lightness: float) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, lightness, 0.6))


def distance(first: str, second: str) -> float:
    """Return how different two colours look: the "redmean" approximation, 0 to about 765."""
    a, b = ([int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (first, second))
    red = (a[0] + b[0]) / 2
    weights = (2 + red / 256, 4.0, 2 + (255 - red) / 256)
    return math.sqrt(sum(weight * (x - y) ** 2 for weight, x, y in zip(weights, a, b, strict=True)))
