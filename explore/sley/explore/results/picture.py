"""The picture of a sweep: one file of HTML with everything in it, whose axes are chosen by a click."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from sley.explore.results.table import Row, rows, write_whole
from sley.explore.sweep.journal import DONE
from sley.explore.sweep.sweep import Outcome

PICTURE = "pareto.html"
PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>{title}</title></head>
<body>{body}</body></html>
"""
OTHERS, FRONT = "#9aa5b1", "#d1495b"


def write_picture(folder: Path, title: str, outcomes: Sequence[Outcome], objectives: Sequence[str]) -> Path | None:
    """Two objectives against each other, a button for each pair; below, all parameters and objectives as lines.

    None where plotly is not installed, or nothing is done.
    """
    try:
        from plotly import graph_objects as go
        from plotly.io import to_html
    except ImportError:
        return None
    table = [row for row in rows(outcomes) if row["status"] == DONE]
    if not table:
        return None
    parameters = list(outcomes[0].point)
    scatter = _scatter(go, title, table, parameters, objectives)
    lines = _lines(go, table, [*parameters, *objectives])
    first = to_html(scatter, full_html=False, include_plotlyjs=True, div_id="front")
    second = to_html(lines, full_html=False, include_plotlyjs=False, div_id="lines")
    return write_whole(folder / PICTURE, PAGE.format(title=title, body=first + second).encode())


def _scatter(go: Any, title: str, table: Sequence[Row], parameters: Sequence[str], objectives: Sequence[str]) -> Any:
    """Designs as points, by their first two objectives; a button for each other pair."""
    pairs = list(combinations(objectives, 2)) or [(objectives[0], objectives[0])]
    x, y = pairs[0]
    figure = go.Figure(layout={"title": title, "template": "plotly_white", "height": 560})
    for name, colour, part in (
        ("others", OTHERS, [row for row in table if not row["pareto"]]),
        ("Pareto front", FRONT, [row for row in table if row["pareto"]]),
    ):
        texts = ["<br>".join(f"{key}: {row[key]}" for key in ("design", *parameters, *objectives)) for row in part]
        figure.add_scatter(
            x=[row[x] for row in part],
            y=[row[y] for row in part],
            mode="markers",
            name=name,
            text=texts,
            hoverinfo="text",
            marker={"color": colour, "size": 9},
        )
    figure.update_xaxes(title=x)
    figure.update_yaxes(title=y)
    parts = [[row for row in table if row["pareto"] == on] for on in (False, True)]
    buttons = [
        {
            "label": f"{a} / {b}",
            "method": "update",
            "args": [
                {"x": [[row[a] for row in part] for part in parts], "y": [[row[b] for row in part] for part in parts]},
                {"xaxis.title.text": a, "yaxis.title.text": b},
            ],
        }
        for a, b in pairs
    ]
    if len(buttons) > 1:
        figure.update_layout(
            updatemenus=[{"type": "buttons", "direction": "right", "buttons": buttons, "y": 1.12, "x": 1.0}]
        )
    return figure


def _lines(go: Any, table: Sequence[Row], names: Sequence[str]) -> Any:
    """A line for each design across axes of all parameters and objectives, to be narrowed by dragging."""
    axes = []
    for name in names:
        values = [row[name] for row in table]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            axes.append({"label": name, "values": values})
        else:
            labels = list(dict.fromkeys(map(str, values)))
            places = [labels.index(str(value)) for value in values]
            axes.append({"label": name, "values": places, "tickvals": list(range(len(labels))), "ticktext": labels})
    colours = [int(row["pareto"]) for row in table]
    line = {"color": colours, "colorscale": [[0, OTHERS], [1, FRONT]], "cmin": 0, "cmax": 1}
    return go.Figure(go.Parcoords(dimensions=axes, line=line), layout={"height": 420})
