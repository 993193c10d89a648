"""How long the short form of every study takes: the processor's seconds of each `--quick`, and the minutes of all.

    python -m benchmarks.speed.quick_studies [--data DIR] [--only NAME ...]

They run as in `make evidence QUICK=1`: two at a time, each on one thread. Seconds of the processor do not depend on
what else the machine does; the minutes do, so run it on an idle machine. With `--only` the others keep the figures that
they have, and so do the minutes.
"""

from __future__ import annotations

from benchmarks.common.data import arguments
from benchmarks.common.harness import load_figures, write_result
from benchmarks.evidence import MOST_QUICK, STUDIES, run_all
from benchmarks.quick import NAME

MOST_MINUTES = 15


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=STUDIES, default=STUDIES, help="all studies unless given")
    options = parser.parse_args()
    known = load_figures(NAME)
    spent, minutes = run_all(options.data, True, options.only)
    seconds = {**known.get("seconds", {}), **spent}
    whole = {"minutes": minutes if len(spent) == len(STUDIES) else known.get("minutes")}
    print(write_result(NAME, {"most seconds": MOST_QUICK, "most minutes": MOST_MINUTES, **whole,
                              "seconds": {one: seconds[one] for one in STUDIES if one in seconds}}))  # fmt: skip


if __name__ == "__main__":
    main()
