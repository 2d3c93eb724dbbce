"""Points of line and scatter charts."""

from typing import Any, Dict, List

from ..plain_values import to_plain
from .labels import tick_value

MOST_POINTS = 100_000


def describe_lines(axes: Any) -> List[Dict[str, Any]]:
    lines = [line for line in axes.lines if len(line.get_xdata()) > 0]
    check_size(sum(len(line.get_xdata()) for line in lines))
    return [
        {
            "label": label_of(line, f"Line {number}"),
            "points": pair(line.get_xdata(orig=True), line.get_ydata(orig=True)),
        }
        for number, line in enumerate(lines)
    ]


def describe_scatter(axes: Any) -> List[Dict[str, Any]]:
    from matplotlib.collections import PathCollection

    sets = [found for found in axes.collections if isinstance(found, PathCollection)]
    check_size(sum(len(points.get_offsets()) for points in sets))
    return [
        {
            "label": label_of(points, f"Dataset {number}"),
            "points": [
                [tick_value(axes.xaxis, x), tick_value(axes.yaxis, y)]
                for x, y in points.get_offsets().tolist()
            ],
        }
        for number, points in enumerate(sets)
    ]


def pair(xs: Any, ys: Any) -> List[List[Any]]:
    return [[to_plain(x), to_plain(y)] for x, y in zip(xs, ys)]


def label_of(artist: Any, unnamed: str) -> str:
    """Returns the label; matplotlib's own ones start with an underscore."""
    label = str(artist.get_label())
    return unnamed if label == "" or label.startswith("_") else label


def check_size(count: int) -> None:
    if count > MOST_POINTS:
        raise ValueError(f"{count} points are too many to send")
