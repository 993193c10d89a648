"""The language of asks, such as `minimize fnr where fpr <= 1%`, read into problems.

labels    = ask "for each of" label { "," label } | label ":" ask { ";" label ":" ask }
ask       = ("minimize" | "maximize") quantity [ where | over ]  |  ("minimize" | "maximize") area [ over ]
where     = ("where" | "subject to" | "such that" | "with" | "given") bound { ("and" | ",") bound }
over      = "over" rate "in" "[" number "," number "]" [ "with" integer "points" ]
area      = "auc" | "average precision"
bound     = quantity relation number | "flagged" relation integer "rows"
relation  = "<=" | ">=" | "==" | "<" | ">" | "at most" | "at least" | "exactly" | "no more than" | "no less than"
quantity  = rate | rate ".gap(" column ")" | cost | rate "weighted by" column
          | rate "of class" class | ("macro" | "micro" | "weighted") rate | rate "gap between classes"
          | ( rate | "hit" ) ( "in the first" | "at" | "@" ) integer
rate      = name | "f_score" "(" number ")" | "cost" "(" "miss" "=" number "," "alarm" "=" number ")"
cost      = "cost" "(" "miss" "=" ( number | column ) "," "alarm" "=" ( number | column ) ")"
number    = decimal [ "%" | "percent" ] | decimal ("per" | "in" | "out of") decimal
column    = word | JSON string
label     = word | JSON string
class     = word | JSON string | integer
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from setpoint.errors import BadAsk, BadProblem
from setpoint.measure.constraint import Constraint, Quantity
from setpoint.measure.in_first import InFirst
from setpoint.measure.rate import Metric, Range, Rate
from setpoint.problem.labels import LabelProblem
from setpoint.problem.near_misses import of_area, of_lists
from setpoint.problem.phrases import AREAS, OF_RATE, PER, Phrases
from setpoint.problem.problem import Problem

_VERBS = {"minimize": False, "minimise": False, "min": False, "maximize": True, "maximise": True, "max": True}
_WHERE = ("where", "subject to", "such that", "with", "given", "s . t .")


def ask(text: str | Mapping[str, str], metrics: Iterable[Metric] = ()) -> Problem:
    """Read a problem from its text; `str(problem)` gives the text back.

    Percent signs, `=`, `≤`, `at most`, and the names `tpr`, `sensitivity`, `specificity` and `f1` are understood.

    Args:
        text: An ask such as `minimize fnr where fpr <= 1%`; for several labels per row a mapping from the name of each
            label to its ask.
        metrics: Metrics of your own that the text may name.

    Returns:
        The problem.

    Raises:
        BadAsk: If the text cannot be read; the message says where, and which word was probably meant.
        BadProblem: If the bounds contradict each other or cannot be had.

    Example:
        >>> import setpoint as sp
        >>> problem = sp.ask("maximise sensitivity where fpr ≤ 1% and flagged <= 5%")
        >>> print(problem)
        maximize recall where fpr <= 1% and flagged <= 5%
    """
    if isinstance(text, Mapping):
        return LabelProblem.of({label: _plain(own, metrics) for label, own in text.items()})
    if not isinstance(text, str):
        raise BadAsk(f"an ask is a text such as 'minimize fnr where fpr <= 1%', got {type(text).__name__}")
    return _Reader(text, {metric.name: metric for metric in metrics}).whole()


def _plain(own: Problem | str, metrics: Iterable[Metric]) -> Problem:
    return own if isinstance(own, Problem) else ask(own, metrics)


def read_problem(problem: Problem | str | Mapping[str, str], *, rows: bool = False) -> Problem:
    """A problem as it is, or read from an ask; bounds in rows are refused unless `rows` is set."""
    if isinstance(problem, str | Mapping):
        problem = ask(problem)
    if not isinstance(problem, Problem):
        raise BadProblem(f"expected an ask such as 'minimize fnr where fpr <= 1%' or a problem, got {problem!r}")
    if not rows:
        problem.refuse_rows()
    return problem


class _Reader(Phrases):
    """Reads one ask from left to right."""

    def whole(self) -> Problem:
        """A problem, or one about several labels: `a: ask; b: ask` or `ask for each of a, b`."""
        if self.peek(1) == ":" and (self.peek().lower() not in _VERBS or self.peek(2).lower() in _VERBS):
            asks: dict[str, Problem] = {}
            while self.peek():
                label = self.label_name()
                self.need(":")
                if label in asks:
                    raise self.error(f"label {label!r} has two asks; give each label one")
                asks[label] = self.problem()
                if self.peek():
                    self.need(";")
            return LabelProblem.of(asks)
        problem = self.problem()
        if self.accept("for each of"):
            labels = [self.label_name()]
            while self.accept(",", "and"):
                labels.append(self.label_name())
            if self.peek():
                raise self.error(self.unexpected(f"the label {labels[-1]}", ["and"]))
            return LabelProblem.same(problem, labels)
        if self.peek():
            raise self.error(self.unexpected("one ask", []))
        return problem

    def label_name(self) -> str:
        return self.name("the name of a label", "label")

    def problem(self) -> Problem:
        self.bounding, said = False, self.next_words(1)
        verb = self.take("word", "'minimize' or 'maximize'").lower()
        if verb not in _VERBS:
            raise self.error(self.unknown(said, _VERBS, f"{said[0]!r} should be 'minimize' or 'maximize'"))
        area = self.area()
        objective: Quantity = self.quantity() if area is None else area[0]
        if self.accept("over lists", "over all lists") and not isinstance(objective, InFirst):
            raise self.error(of_lists(objective))
        over = self.range() if self.accept("over") else None
        if area is not None:
            over = area[1].between(0, 1) if over is None else self.part_of_area(area[1], over)
        constraints: list[Constraint] = []
        if self.accept(*_WHERE):
            if area is not None:
                raise self.error(of_area(verb, *area))
            self.bounding = True
            constraints.append(self.bound())
            while self.accept("and", ","):
                constraints.append(self.bound())
        elif not self.ends:
            names = [] if over else [*OF_RATE, "over", *_WHERE]
            before = f"the range of {over.rate}" if over else f"{objective}"
            raise self.error(self.unexpected(before, [*names, "for each of"]))
        return Problem(objective, _VERBS[verb], tuple(constraints), over)

    @property
    def ends(self) -> bool:
        """Whether the ask of a label is at its end."""
        return self.peek() in ("", ";") or self.ahead("for each of")

    def unexpected(self, before: str, names: Sequence[str]) -> str:
        """The sentence on a word that cannot stand here, where one of the names may."""
        if self.peek().lower() == "or":
            return "all bounds hold together, so that 'or' is not possible; did you mean 'and'?"
        return self.unknown(self.next_words(), names, f"{self.peek()!r} is unexpected after {before}")

    def area(self) -> tuple[Rate, Rate] | None:
        """The objective and the rate of an area that is named, such as auc."""
        count, name = self.longest(AREAS)
        if not count or name in self.plain:
            return None
        self.place += count
        return AREAS[name]

    def part_of_area(self, rate: Rate, over: Range) -> Range:
        if not bool(over.rate == rate):
            raise self.error(f"this area is over {rate}, not over {over.rate}; write the objective as a rate")
        return over

    def range(self) -> Range:
        rate = self.quantity()
        self.need("in")
        self.need("[")
        low = self.number()
        self.need(",")
        high = self.number()
        self.need("]")
        if not isinstance(rate, Rate):
            raise self.error(f"{rate} has no range to average over; use a rate such as fpr or recall")
        if not self.accept("with"):
            return rate.between(low, high)
        points = self.take("number", "a number of points")
        self.need("points", "point")
        if not points.isdigit():
            raise self.error(f"expected a whole number of points but found {points!r}")
        return rate.between(low, high, int(points))

    def bound(self) -> Constraint:
        quantity = self.quantity()
        relation = self.relation(quantity)
        plain = self.kind() == "number" and not self.peek().endswith("%")
        start, bound = self.place, self.number()
        if self.accept("rows", "row"):
            if self.accept(*PER):
                bound = self.out_of(bound)
            elif isinstance(quantity, Rate) and plain:
                quantity = quantity.rows
            else:
                raise self.error(f"rows are a number of flagged rows, as in flagged {relation} 100 rows;")
        read = f"{quantity} {relation} {' '.join(text for _, text in self.tokens[start : self.place])}"
        if self.peek() == "," and self.kind(1) == "number":
            raise self.error(f"expected a number with a point, such as 1.5%, but found {self.peek(-1)},{self.peek(1)}")
        if not self.ends and self.peek() != "," and not self.ahead("and"):
            raise self.error(self.unexpected(read, ["and", "percent", "rows", "for each of"]))
        if quantity.is_share and not 0 <= bound <= 1 and read.endswith(("%", "percent", "per cent")):
            raise self.error(f"expected a share from 0% to 100% but found {read}")
        return Constraint(quantity, relation, bound)
