"""How long the short form of every study takes: the processor seconds of each `--quick`, one after the other.

    python -m benchmarks.speed.quick_studies [--data DIR] [--only NAME ...]

`make evidence QUICK=1` runs the same commands two at a time, each on one thread, so that on two idle cores it takes
about half of their sum. Seconds of the processor do not depend on what else the machine does. With `--only` the others
keep the figures that they have.
"""

from __future__ import annotations

from benchmarks.common.data import arguments
from benchmarks.common.harness import load_figures, write_result
from benchmarks.evidence import MOST_QUICK, STUDIES, module_of, run
from benchmarks.quick import NAME

MOST_MINUTES = 15


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=STUDIES, default=STUDIES, help="all studies unless given")
    options = parser.parse_args()
    seconds: dict[str, float] = load_figures(NAME).get("seconds", {})
    for study in options.only:
        seconds[study] = run(study, options.data, quick=True)
        write_result(NAME, {"most seconds": MOST_QUICK, "most minutes": MOST_MINUTES,
                            "seconds": {one: seconds[one] for one in STUDIES if one in seconds}})  # fmt: skip
    print({module_of(study): round(seconds[study]) for study in seconds})


if __name__ == "__main__":
    main()
