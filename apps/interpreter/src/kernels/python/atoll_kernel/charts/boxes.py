"""Box plots. Their artists are plain lines, so the statistics are noted when matplotlib draws them."""

from typing import Any, Dict, List
from weakref import WeakKeyDictionary

from ..after_import import after_import
from ..plain_values import to_plain

noted: "WeakKeyDictionary[Any, List[Any]]" = WeakKeyDictionary()


def watch_box_plots() -> None:
    after_import("matplotlib.axes._axes", wrap_box_plots)


def wrap_box_plots(module: Any) -> None:
    draw = module.Axes.bxp

    def bxp(self: Any, bxpstats: Any, *args: Any, **options: Any) -> Any:
        statistics = list(bxpstats)
        drawn = draw(self, statistics, *args, **options)
        noted.setdefault(self, []).extend(statistics)
        return drawn

    bxp.__doc__, bxp.__wrapped__ = draw.__doc__, draw
    module.Axes.bxp = bxp


def describe_boxes(axes: Any) -> List[Dict[str, Any]]:
    statistics = noted.get(axes, []) if axes.lines else []
    labels = [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    return [describe(box, number, labels) for number, box in enumerate(statistics)]


def describe(box: Dict[str, Any], number: int, labels: List[str]) -> Dict[str, Any]:
    own = str(box.get("label", ""))
    # Labels set after the plot replace the numbers that matplotlib gives.
    replaced = labels[number] if number < len(labels) and own in ("", str(number + 1)) else own
    return {
        "label": replaced or own,
        "min": to_plain(box["whislo"]),
        "first_quartile": to_plain(box["q1"]),
        "median": to_plain(box["med"]),
        "third_quartile": to_plain(box["q3"]),
        "max": to_plain(box["whishi"]),
        "outliers": [to_plain(value) for value in box.get("fliers", [])],
    }
