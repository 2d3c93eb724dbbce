"""Values of numpy, pandas and datetime as plain numbers and texts."""

import math
from typing import Any


def to_plain(value: Any) -> Any:
    """Returns a number, text, boolean or None. Dates become ISO texts."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "isoformat"):
        # pandas' NaT has the method too.
        return value.isoformat() if value == value else None
    if hasattr(value, "astype") and "datetime64" in str(getattr(value, "dtype", "")):
        return str(value.astype("datetime64[s]"))
    if hasattr(value, "item"):
        return to_plain(value.item())
    return str(value)
