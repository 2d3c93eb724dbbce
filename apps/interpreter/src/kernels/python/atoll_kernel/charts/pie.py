"""Wedges of a pie."""

from typing import Any, Dict, List

from ..plain_values import to_plain


def describe_pie(axes: Any) -> List[Dict[str, Any]]:
    from matplotlib.patches import Wedge

    return [
        {
            "label": str(wedge.get_label()),
            "angle": to_plain(abs(wedge.theta2 - wedge.theta1)),
            "radius": to_plain(wedge.r),
        }
        for wedge in axes.patches
        if isinstance(wedge, Wedge)
    ]
