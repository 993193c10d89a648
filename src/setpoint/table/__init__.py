"""From a file to numbers: frames, what training saw in each column, features and labels."""

from setpoint.errors import missing

try:
    import polars  # noqa: F401
except ImportError as cause:
    raise missing("polars", "table", cause) from None
