"""Data frames as lists of column values."""

from typing import Any, Dict, Optional

from .plain_values import to_plain

MOST_CELLS = 1_000_000


def describe_data_frame(frame: Any) -> Optional[Dict[str, Any]]:
    """Returns the columns by name, or None for a frame that is too large to send."""
    if frame.size > MOST_CELLS:
        return None
    return {
        str(name): [to_plain(value) for value in frame.iloc[:, position].tolist()]
        for position, name in enumerate(frame.columns)
    }
