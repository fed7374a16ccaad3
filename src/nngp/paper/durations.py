"""Times as people say them."""


def spoken(seconds: float) -> str:
    """Seconds, minutes or hours, in two digits or so."""
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
