"""Bars, by group."""

from typing import Any, Dict, List

from ..plain_values import to_plain
from .points import check_size, label_of


def describe_bars(axes: Any) -> List[Dict[str, Any]]:
    from matplotlib.container import BarContainer

    groups = [found for found in axes.containers if isinstance(found, BarContainer)]
    check_size(sum(len(group.patches) for group in groups))
    return [
        {
            "label": label_at(axes, group, bar),
            "group": label_of(group, f"Group {number}"),
            "value": to_plain(length_of(group, bar)),
        }
        for number, group in enumerate(groups)
        for bar in group.patches
    ]


def length_of(group: Any, bar: Any) -> Any:
    return bar.get_width() if group.orientation == "horizontal" else bar.get_height()


def label_at(axes: Any, group: Any, bar: Any) -> str:
    """Returns the tick label nearest to the bar, so that grouped bars share one, or else its position."""
    is_horizontal = group.orientation == "horizontal"
    axis = axes.yaxis if is_horizontal else axes.xaxis
    start, size = (
        (bar.get_y(), bar.get_height()) if is_horizontal else (bar.get_x(), bar.get_width())
    )
    middle = start + size / 2
    ticks = list(zip(axis.get_ticklocs(), (label.get_text() for label in axis.get_ticklabels())))
    near = [(abs(place - middle), text) for place, text in ticks if abs(place - middle) <= 0.5 and text]
    if near and is_named(axis):
        return min(near)[1]
    return str(to_plain(round(middle, 10)))


def is_named(axis: Any) -> bool:
    """Whether the ticks have names: categories, or labels that user code set."""
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    has_categories = "Category" in type(axis.converter).__name__
    return has_categories or isinstance(axis.get_major_formatter(), (FixedFormatter, FuncFormatter))
