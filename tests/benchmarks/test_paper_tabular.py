"""Table 5 of the implicit-thresholds paper: which claim is the paper's own."""

from __future__ import annotations

import pytest
from benchmarks.studies.paper_tabular import page
from benchmarks.studies.paper_tabular.study import AS_PUBLISHED


@pytest.mark.parametrize(("ijcnn1", "met"), [(9.0, True), (0.5, False)])
def test_the_claim_of_the_paper_is_of_the_two_imbalanced_sets_alone(ijcnn1, met):
    gains = {"letter": 7.0, "ijcnn1": ijcnn1, "communities_crime": -3.0}
    rows = [
        {"set": name, "method": AS_PUBLISHED, "area": {"mean": 20.0},
         **{f"minus {rival}": {"mean": gain, "standard_error": 0.4, "corrected_standard_error": 1.0}
            for rival in ("cross-entropy", "best of 21 weights")}}
        for name, gain in gains.items()
    ]  # fmt: skip
    figures = {"rows": rows, "seeds": [0, 1]}
    own, *others = [claim for claim in page.claims(figures) if "sets" in claim.on and claim.gain]
    assert (own.met, own.index, own.against) == (met, True, "cross-entropy")
    assert [(claim.against, claim.met, claim.index) for claim in others] == [
        ("cross-entropy", False, False),
        ("best of 21 weights", False, True),
    ]
    answer = page.answer(figures)
    assert answer.startswith("Yes" if met else "No")
    assert "worse on 1 (communities_crime)" in answer
    assert page.published_claim({"rows": rows[:1], "seeds": [0]}) == []
