"""Boxes, arrows and text as SVG text that is the same bytes on every run.

A picture has its own background and its own colours for a light and a dark screen, so it can be read on either.
"""

from html import escape
from math import hypot

STYLE = """
  .page { fill: #ffffff; stroke: #d0d7de; }
  .box { fill: #f3f6f9; stroke: #57606a; }
  .host { fill: #fff4e0; stroke: #9a6700; }
  .unit { fill: #e3f0ff; stroke: #0a58ca; }
  .store { fill: #e4f5e8; stroke: #1a7f37; }
  .frame { fill: none; stroke: #8c959f; stroke-dasharray: 5 4; }
  .line { fill: none; stroke: #424a53; stroke-width: 1.6; }
  .thin { fill: none; stroke: #8c959f; stroke-width: 1; stroke-dasharray: 3 3; }
  .bold { fill: none; stroke: #0a58ca; stroke-width: 2.4; }
  .head { fill: #424a53; }
  .dot { fill: #bc4c00; }
  text { fill: #1f2328; font-family: system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; }
  .small { fill: #57606a; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #161b22; stroke: #30363d; }
    .box { fill: #21262d; stroke: #8b949e; }
    .host { fill: #3a2d12; stroke: #d29922; }
    .unit { fill: #11294d; stroke: #58a6ff; }
    .store { fill: #12301b; stroke: #3fb950; }
    .frame, .thin { stroke: #6e7681; }
    .line { stroke: #c9d1d9; }
    .bold { stroke: #58a6ff; }
    .head { fill: #c9d1d9; }
    .dot { fill: #f0883e; }
    text { fill: #e6edf3; }
    .small { fill: #9da7b3; }
  }
"""


def number(value: float) -> str:
    """A coordinate with at most one digit behind the point."""
    return f"{value:.1f}".removesuffix(".0")


class Picture:
    """A picture of ``width`` x ``height`` pixels; ``title`` is what a screen reader says."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, *lines: str, kind: str = "box") -> None:
        """A rounded box; the first of the ``lines`` in its middle is its name, the others are smaller."""
        place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        self._parts.append(f'<rect class="{kind}" {place} rx="5"/>')
        top = y + height / 2 - 8 * (len(lines) - 1) + 4.5
        for index, line in enumerate(lines):
            self.text(x + width / 2, top + 16 * index, line, small=index > 0, anchor="middle")

    def text(self, x: float, y: float, line: str, small: bool = False, anchor: str = "start") -> None:
        style = 'class="small" font-size="11.5"' if small else 'font-size="13.5"'
        where = f'x="{number(x)}" y="{number(y)}"'
        self._parts.append(f'<text {where} {style} text-anchor="{anchor}">{escape(line)}</text>')

    def line(self, *points: tuple[float, float], kind: str = "line") -> None:
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{path}"/>')

    def arrow(self, *points: tuple[float, float], both: bool = False) -> None:
        """A line through ``points`` with a head at its end, or at both ends."""
        self.line(*points)
        self._head(points[-2], points[-1])
        if both:
            self._head(points[1], points[0])

    def dot(self, x: float, y: float) -> None:
        self._parts.append(f'<circle class="dot" cx="{number(x)}" cy="{number(y)}" r="5"/>')

    def _head(self, before: tuple[float, float], tip: tuple[float, float]) -> None:
        length = hypot(tip[0] - before[0], tip[1] - before[1])
        east, south = (tip[0] - before[0]) / length, (tip[1] - before[1]) / length
        base = (tip[0] - 9 * east, tip[1] - 9 * south)
        corners = [tip, (base[0] - 4 * south, base[1] + 4 * east), (base[0] + 4 * south, base[1] - 4 * east)]
        self._parts.append(
            f'<polygon class="head" points="{" ".join(f"{number(x)},{number(y)}" for x, y in corners)}"/>'
        )

    def svg(self) -> str:
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<style>{STYLE}</style>",
                f'<rect class="page" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8"/>',
                *self._parts,
                "</svg>",
                "",
            ]
        )
