"""Titles, labels, units, ticks and scales of axes."""

import re
from typing import Any, Dict, List, Optional

from ..plain_values import to_plain


def title_of(axes: Any) -> str:
    return axes.get_title() or axes.get_title(loc="left") or axes.get_title(loc="right")


def describe_labels(axes: Any, kind: str, elements: List[Any]) -> Dict[str, Any]:
    chart: Dict[str, Any] = {"type": kind, "title": title_of(axes), "elements": elements}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        label = axis.get_label().get_text()
        chart[f"{name}_label"] = label
        chart[f"{name}_unit"] = unit_of(label)
        if kind in ("line", "scatter"):
            chart.update(describe_ticks(name, axis))
    return chart


def describe_ticks(name: str, axis: Any) -> Dict[str, Any]:
    return {
        f"{name}_ticks": [tick_value(axis, location) for location in axis.get_ticklocs()],
        f"{name}_tick_labels": [label.get_text() for label in axis.get_ticklabels()],
        f"{name}_scale": scale_of(axis),
    }


def unit_of(label: str) -> Optional[str]:
    """Returns the unit in a label such as `Time (s)` or `Time [s]`."""
    match = re.search(r"[(\[]([^)\]]+)[)\]]\s*$", label)
    return match.group(1) if match else None


def scale_of(axis: Any) -> str:
    converter = type(axis.converter).__name__
    if "Date" in converter:
        return "datetime"
    return "categorical" if "Category" in converter else axis.get_scale()


def tick_value(axis: Any, location: Any) -> Any:
    if scale_of(axis) != "datetime":
        return to_plain(location)
    from matplotlib.dates import num2date

    return num2date(location).isoformat()
