"""Is the published gain over an over-trained baseline? Trained about as long as published, no epoch chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.common.harness import load_figures
from benchmarks.common.words import gain, table
from benchmarks.studies.default_study.verdict import sides
from benchmarks.studies.paper_programs.no_choice import MOST, NAME
from benchmarks.studies.paper_programs.published import TABLE_1, TRAINING_IMAGES, passes_at
from benchmarks.studies.paper_programs.verdict import COLUMN, PLAIN

Row = dict[str, Any]
LEVEL = 91
#: Why it says little that the end is below the best pass.
PICKED = "which was picked on the same images"
COMMAND = "`python -m benchmarks.studies.paper_programs.no_choice`"


@dataclass(frozen=True)
class Trained:
    """Cross-entropy and the others at the end of a long training."""

    plain: Row
    others: dict[str, Row]

    @property
    def programs(self) -> dict[str, Row]:
        """The forms with the paper's margin."""
        return {method: row for method, row in self.others.items() if COLUMN.get(method) == "program"}

    @property
    def ahead(self) -> list[str]:
        """The programs that are ahead of cross-entropy on test images by two plain standard errors."""
        return [name for name, row in self.programs.items() if sides(row["minus cross-entropy"], "standard_error") > 0]

    @property
    def harmed(self) -> bool:
        """Whether cross-entropy ends two standard errors below its best pass on held-out images, as the rule asks.

        The pass is picked on the same images, so that the mean cannot be above zero.
        """
        return sides(self.plain["end minus best"], "standard_error") < 0

    def held_out(self, method: str) -> float:
        """The held-out AUC of a method at the end, less that of cross-entropy."""
        return at_end(self.others[method]) - at_end(self.plain)


def at_end(row: Row) -> float:
    return float(row["held-out AUC there"] + row["end minus best"]["mean"])


def trained() -> Trained | None:
    rows = {row["method"]: row for row in load_figures(NAME).get("rows", ())}
    return Trained(rows.pop(PLAIN), rows) if PLAIN in rows else None


def published_gain() -> float:
    return TABLE_1[LEVEL]["program"] - TABLE_1[LEVEL]["cross-entropy"]


def lead(found: Trained | None) -> str:
    """The reason in one sentence."""
    if found is None or not (found.harmed and found.ahead):
        return "Neither a weak nor an over-trained baseline makes the published gain here."
    gains = [found.others[method]["minus cross-entropy"] for method in found.ahead]
    sure = any(sides(one, "corrected_standard_error") > 0 for one in gains)
    lost = found.plain["end minus best"]
    return (
        "Over-training may be a part of the reason: after about as many passes as published "
        f"{len(found.ahead)} of {len(found.programs)} forms {'is' if len(found.ahead) == 1 else 'are'} ahead on test "
        f"images, by {max(one['mean'] for one in gains):.1f} of the published {published_gain():.1f} points"
        f"{'' if sure else ' and by plain errors alone'}, and {on_held_out(found)}; cross-entropy is then "
        f"{-lost['mean']:.1f} ± {lost['standard_error']:.1f} points below its best pass, {PICKED}."
    )


def on_held_out(found: Trained) -> str:
    """Where the forms that are ahead on test images are on held-out ones."""
    too = sum(found.held_out(method) > 0 for method in found.ahead)
    if too in (0, len(found.ahead)):
        return f"{'ahead' if too else 'behind'} on held-out ones{' too' * bool(too)}"
    return f"{too} of these on held-out ones too"


def by_the_rule(found: Trained) -> str:
    """The rule fixed before, how many forms pass it, and what held-out images say."""
    held = ", ".join(f"{method} {found.held_out(method):+.1f}" for method in found.programs)
    ahead = "".join(f", {name} {gain(found.others[name]['minus cross-entropy'], 1)}" for name in found.ahead)
    return (
        "The rule fixed before asks that cross-entropy is harmed, so that on held-out images it ends below its best "
        f"pass ({PICKED}), and that one form with the paper's margin is ahead, both by two plain standard errors: "
        f"{len(found.ahead)} of {len(found.programs)} is{ahead}, of a published {published_gain():+.1f}. On held-out "
        f"images at the end the forms less cross-entropy have: {held}. So "
        f"over-training {'may be a part of the reason, and is' if found.ahead and found.harmed else 'is'} not shown to "
        "be the whole."
    )


def told(found: Trained | None) -> list[str]:
    """All of it, for the page of the study: the rule and what it says, and a table of the methods."""
    if found is None:
        return []
    lost = found.plain["end minus best"]
    rows = [[PLAIN, f"{found.plain['AUC']['mean']:.1f}", "", ""]]
    for method, row in found.others.items():
        rows.append([method, f"{row['AUC']['mean']:.1f}", gain(row["minus cross-entropy"], 1),
                     f"{found.held_out(method):+.1f}"])  # fmt: skip
    head = ["method", "AUC", "over cross-entropy", "over it on held-out images"]
    return [
        f"*Over-trained?* The paper's 40,000 steps of 64 are {passes_at(LEVEL):.0f} passes at 91 % positive; it does "
        f"not say whether an epoch is chosen. {by_the_rule(found)}",
        f"After 100 passes at 91 % positive without a choice of the epoch ({COMMAND}, {len(found.plain['seeds'])} "
        f"seeds; published: cross-entropy {TABLE_1[LEVEL]['cross-entropy']:.1f}). On held-out images cross-entropy is "
        f"then {lost['mean']:+.1f} ± {lost['standard_error']:.1f} from its best pass, number "
        f"{found.plain['best pass']}, {PICKED}: the mean cannot be above zero. A ResNet-18 and "
        f"{TRAINING_IMAGES / 2 / MOST:.1f} times the images were not tried, for time; passes go by the paper's split "
        "into 45,000 training and 5,000 validation images:",
        table(head, rows),
    ]


def answered(found: Trained | None) -> list[str]:
    """Whether long training makes the gain, for the answer."""
    return [] if found is None else [lead(found)]


def short(found: Trained | None) -> list[str]:
    """The same in two sentences, for the list of the papers."""
    if found is None:
        return []
    return [
        f"*An over-trained baseline?* After 100 passes without a choice of the epoch ({len(found.plain['seeds'])} "
        f"seeds; published: {passes_at(LEVEL):.0f} passes) cross-entropy has {found.plain['AUC']['mean']:.1f}, "
        f"published {TABLE_1[LEVEL]['cross-entropy']:.1f}. {by_the_rule(found)} ([Study](paper_programs.md).)"
    ]
