"""Write down how much of src the tests reach, from the report of `make coverage`.

python -m benchmarks.faults.coverage coverage.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.common.harness import write_result

#: The least share of lines and branches together.
WANTED = 0.95


def main() -> None:
    report = json.loads(Path(sys.argv[1]).read_text())
    totals = report["totals"]
    reached = totals["covered_lines"] + totals["covered_branches"]
    share = reached / (totals["num_statements"] + totals["num_branches"])
    figures = {
        "share": round(share, 4),
        "lines": round(totals["covered_lines"] / totals["num_statements"], 4),
        "branches": round(totals["covered_branches"] / totals["num_branches"], 4),
        "num_statements": totals["num_statements"],
        "num_branches": totals["num_branches"],
        "files_below_95": {
            path: round(part["summary"]["percent_covered"] / 100, 4)
            for path, part in sorted(report["files"].items())
            if part["summary"]["percent_covered"] < 95
        },
    }
    write_result("coverage", figures)
    print(f"{share:.1%} of lines and branches ({figures['lines']:.1%} of lines, {figures['branches']:.1%} of branches)")
    if share < WANTED:
        sys.exit(f"less than {WANTED:.0%}")


if __name__ == "__main__":
    main()
