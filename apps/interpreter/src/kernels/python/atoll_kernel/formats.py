"""Formats beyond those of IPython: the columns of data frames and the content of charts."""

import sys
from typing import Any, Callable

from IPython.core.formatters import BaseFormatter, DisplayFormatter
from traitlets import ObjectName, Unicode

from .charts.boxes import watch_box_plots
from .charts.figure import describe_figure
from .data_frame import describe_data_frame


class DataFormatter(BaseFormatter):
    format_type = Unicode("application/vnd.atoll.data+json")
    print_method = ObjectName("_repr_atoll_data_")
    _return_type = dict


class ChartFormatter(BaseFormatter):
    format_type = Unicode("application/vnd.atoll.chart+json")
    print_method = ObjectName("_repr_atoll_chart_")
    _return_type = dict

    def lookup(self, obj: Any) -> Any:
        # Not registered by type: IPython removes figures from all formatters when it sets up the inline backend.
        library = sys.modules.get("matplotlib.figure")
        if library is not None and isinstance(obj, library.Figure):
            return optional(describe_figure)
        return super().lookup(obj)


def add_formats(display: DisplayFormatter) -> None:
    data, chart = DataFormatter(parent=display), ChartFormatter(parent=display)
    # By name: the library is not loaded before user code needs it.
    data.for_type_by_name("pandas.core.frame", "DataFrame", optional(describe_data_frame))
    watch_box_plots()
    for formatter in (data, chart):
        display.formatters[formatter.format_type] = formatter
        if formatter.format_type not in display.active_types:
            display.active_types = [*display.active_types, formatter.format_type]


def optional(describe: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Leaves out a description that fails: the picture and the text are still a result."""

    def describe_if_possible(value: Any) -> Any:
        try:
            return describe(value)
        except Exception:
            return None

    return describe_if_possible
