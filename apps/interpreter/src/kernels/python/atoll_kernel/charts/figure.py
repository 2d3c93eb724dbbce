"""Content of a matplotlib figure: one chart, or several as a superchart."""

from typing import Any, Dict, List, Optional

from .bars import describe_bars
from .boxes import describe_boxes
from .labels import describe_labels, title_of
from .pie import describe_pie
from .points import describe_lines, describe_scatter


def describe_figure(figure: Any) -> Optional[Dict[str, Any]]:
    charts = [describe_axes(axes) for axes in figure.axes if is_chart(axes)]
    if not charts:
        return None
    if len(charts) == 1:
        return charts[0]
    title = figure._suptitle.get_text() if figure._suptitle else ""
    return {"type": "superchart", "title": title, "elements": charts}


def is_chart(axes: Any) -> bool:
    """Colour bars are axes too."""
    return axes.get_label() != "<colorbar>" and axes.get_visible()


def describe_axes(axes: Any) -> Dict[str, Any]:
    """Describes axes by the first kind that fits; a pie has no axis labels."""
    pie = describe_pie(axes)
    if pie:
        return {"type": "pie", "title": title_of(axes), "elements": pie}
    for kind, describe in KINDS:
        elements: List[Any] = describe(axes)
        if elements:
            return describe_labels(axes, kind, elements)
    return {"type": "unknown", "title": title_of(axes), "elements": []}


KINDS = (
    ("box_and_whisker", describe_boxes),
    ("bar", describe_bars),
    ("line", describe_lines),
    ("scatter", describe_scatter),
)
