"""docs/quality.md: what is fuzzed, covered and mutated, how, and the figures from the results on disk."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.common.harness import ROOT, load_result, made_by
from benchmarks.common.words import table

PAGE = ROOT / "docs" / "quality.md"

HEAD = """# How the code is tested

Written by `python -m benchmarks.evidence` from `benchmarks/results/`; no figure here is typed.

Beside the tests of each room (`make test`) three things are run to see what those miss."""

FUZZ = """## Fuzzing

    make fuzz                 # ten minutes; SECONDS=60 for one

Every name in `setpoint.__all__` is called with whatever somebody will pass one day: scores that are huge, denormal,
tied, empty, of one class, in half precision, whole numbers, truth values, lists, arrays read backwards, columns, a
single number; weights of 0, groups, NaN and infinities; problems of every kind; programs without a solution; saved
files with bytes flipped, keys lost and types changed. `tests/fuzz/test_fuzz.py` fails if a public name has no target.
The laws, in `tests/fuzz/laws.py`:

- only a `SetpointError` with a sentence in it may be raised;
- losses, gradients, state, rates, thresholds and objectives are finite (a linear program without a solution says so
  by name and by an infinite value);
- no case takes more than 5 s of processor time;
- reading a file runs nothing: an audit hook listens for code, processes and pickles.

In `make test-all` a few dozen cases per target are run, in CI the same ones every time. `make fuzz` draws new ones,
each target in a process of its own, and lets [atheris](https://github.com/google/atheris) breed bytes for the language
of asks and the readers of files by the branches they reach. Every input that failed has a test in
`tests/fuzz/test_found.py`.

Limits, stated where the input comes in: scores to train on up to 1e35, weights other than 0 from 1e-12 to 1e12 (only
their ratios matter), numbers of a program up to 1e20, betas from 1e-6 to 1e6. Settings are drawn from 1e-6 to 1e6, or
impossible. Sums over pairs (not means) are fuzzed in single and double precision: their slopes do not fit half."""

COVERAGE = """## Coverage

    make coverage             # the tests, with lines and branches; fails below 95 %"""

MUTATION = """## Mutation

    make mutation             # all mutants; SAMPLE=500 for a random sample

`benchmarks/faults/mutation.py` makes the changes of mutmut, one at a time, in `measure/`, `problem/` and
`decide/cut.py` and `by_rank.py`, and runs the tests that reach the changed line, the quickest first, until one
fails. Changes within `raise` statements (texts of messages) are left out and counted. Hypothesis draws 40 cases, not
150, so that the real tests notice at least what is counted here. Nothing else is left out: a survivor that cannot be
told from the code as it is counts as a survivor, and is explained below, from
`benchmarks/faults/mutation_explained.json`."""


def fuzzed() -> str:
    result = load_result("fuzz")
    figures = result["figures"]
    failed = len(figures["failures"])
    rows = [
        [name.replace("_", " "), f"{one['cases']:,}", f"{one['answered']:,}", f"{one['slowest']:.2f}"]
        for name, one in figures["targets"].items()
    ]
    rows += [[f"bytes: {name}", f"{one['cases']:,}", "", ""] for name, one in figures["bytes"].items()]
    return (
        f"{made_by(result)} {figures['cases']:,} cases in {figures['seconds']} s, seed {figures['seed']}: {failed} "
        f"failed, the slowest took {figures['slowest']:.2f} s.\n\n"
        + table(["target", "cases", "answered, not refused", "slowest, s"], rows)
    )


def covered() -> str:
    result = load_result("coverage")
    figures = result["figures"]
    below = [[path, f"{share:.1%}"] for path, share in figures["files_below_95"].items()]
    text = (
        f"{made_by(result)} {figures['share']:.1%} of lines and branches of `src` together: {figures['lines']:.1%} of "
        f"{figures['num_statements']:,} lines, {figures['branches']:.1%} of {figures['num_branches']:,} branches."
    )
    return text + ("\n\n" + table(["file below 95 %", "covered"], below) if below else "")


def mutated() -> str:
    result = load_result("mutation")
    figures = result["figures"]
    drawn = f"a random sample, seed {figures['seed']}, of the" if figures["sampled"] else "all"
    rows = [
        [name, str(sum(count.values())), f"{1 - count.get('survived', 0) / sum(count.values()):.0%}"]
        for name, count in figures["by_file"].items()
    ]
    groups: dict[str, list[str]] = defaultdict(list)
    for one in figures["survivors"]:
        groups[one["why"] or "not explained"].append(one["mutant"])
    listed = [
        f"**{why}** ({len(names)})\n\n" + "\n".join(f"- `{name}`" for name in names)
        for why, names in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    return (
        f"{made_by(result)} {figures['tried']} mutants, {drawn} {figures['mutants']:,} ({figures['left_out_messages']} "
        f"of messages left out): {figures['killed_share']:.1%} killed, by {figures['tests']} tests in "
        f"{figures['seconds'] / 60:.0f} minutes.\n\n{table(['file', 'mutants tried', 'killed'], rows)}\n\n"
        "### The survivors\n\n" + "\n\n".join(listed)
    )


def page() -> str:
    """The whole page, from the json files."""
    return "\n\n".join([HEAD, FUZZ, fuzzed(), COVERAGE, covered(), MUTATION, mutated()]) + "\n"
