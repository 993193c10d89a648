"""Peers beyond the contests: does each run today, and how does it answer a bound?

    python -m benchmarks.peers.environments
    python -m benchmarks.peers.states [--cache DIR] [NAME ...]

Each runs a few lines in its own environment, on the same 4,000 rows, and prints one sentence; an error is the answer
where there is one. With names the others keep the answers that they have.
"""

from __future__ import annotations

import argparse
import subprocess
from dataclasses import dataclass

from benchmarks.common.harness import load_figures, write_result
from benchmarks.common.sets import CACHE
from benchmarks.peers.environments import PEERS, python_of

ROWS = """
import warnings; warnings.simplefilter("ignore")
import numpy as np
draw = np.random.default_rng(0)
x = draw.normal(size=(4000, 5)); y = (x[:, 0] + draw.normal(size=4000) > 1.5).astype(int)
group = draw.integers(0, 2, 4000)
old, new = slice(0, 2000), slice(2000, 4000)
"""
FAIRGBM = """
from fairgbm import FairGBMClassifier
model = FairGBMClassifier(constraint_type="FNR", n_estimators=20, random_state=0)
scores = model.fit(x[old], y[old], constraint_group=group[old]).predict_proba(x[new])[:, 1]
print(f"runs, scores from {scores.min():.2f} to {scores.max():.2f}")"""


@dataclass(frozen=True)
class Try:
    """What is tried of a peer, and the lines that do it; they print the answer."""

    peer: str
    tried: str
    code: str


TRIES = (
    Try("catboost", "`select_threshold(FPR=0.01)`, then the FPR of new rows", """
from catboost import CatBoostClassifier, Pool
from catboost.utils import select_threshold
model = CatBoostClassifier(iterations=50, verbose=False, allow_writing_files=False).fit(x[:1000], y[:1000])
cut = select_threshold(model, data=Pool(x[1000:2000], y[1000:2000]), FPR=0.01)
fpr = (model.predict_proba(x[new])[y[new] == 0, 1] > cut).mean()
print(f"one of FPR and FNR, on given rows, without a confidence; FPR of new rows {100 * fpr:.1f} %")"""),
    Try("fairgbm", "`constraint_type=FNR`, scikit-learn 1.5.2", FAIRGBM),
    Try("fairgbm_today", "the same, scikit-learn 1.9.1", FAIRGBM),
    Try("empulse", "`CSLogitClassifier` with costs", """
from empulse.models import CSLogitClassifier
model = CSLogitClassifier(fp_cost=1, fn_cost=5).fit(x[old], y[old])
print(f"costs and profits, no bounds; flags {100 * model.predict(x[new]).mean():.1f} % of new rows")"""),
    Try("autogluon", "LightGBM alone, `calibrate_decision_threshold` for precision", """
import tempfile
import pandas as pd
from autogluon.tabular import TabularPredictor
def frame(rows):
    return pd.DataFrame(x[rows]).rename(columns=str).assign(y=y[rows])
with tempfile.TemporaryDirectory() as home:
    model = TabularPredictor("y", path=home, verbosity=0).fit(frame(old), hyperparameters={"GBM": {}}, num_cpus=1)
    cut = model.calibrate_decision_threshold(metric="precision", verbose=False)
    flagged = model.predict_proba(frame(new))[1].to_numpy() > cut
recall = flagged[y[new] == 1].mean()
print(f"a cut that is best for one metric, no bound beside it: precision alone flags {100 * flagged.mean():.1f} % of "
      f"new rows, recall {100 * recall:.1f} %")"""),
    Try("nannyml", "`CBPE` of specificity without labels", """
import pandas as pd, nannyml
from sklearn.linear_model import LogisticRegression
model = LogisticRegression().fit(x[:1000], y[:1000])
def frame(rows):
    p = model.predict_proba(x[rows])[:, 1]
    return pd.DataFrame({"p": p, "yes": (p > 0.5).astype(int), "y": y[rows]})
estimator = nannyml.CBPE(metrics=["specificity"], y_pred_proba="p", y_pred="yes", y_true="y", chunk_size=500,
                         problem_type="classification_binary").fit(frame(slice(1000, 2000)))
found = estimator.estimate(frame(new)).filter(period="analysis").to_df()["specificity"]["value"].mean()
true = 1 - frame(new).query("y == 0")["yes"].mean()
print(f"estimates rates without labels: specificity {found:.3f}, true {true:.3f}; no error over many looks")"""),
    Try("evidently", "`Report` with `FPR`, pandas 2", """
import pandas as pd
from evidently import BinaryClassification, DataDefinition, Dataset, Report
from evidently.metrics import FPR
from sklearn.linear_model import LogisticRegression
model = LogisticRegression().fit(x[old], y[old])
frame = pd.DataFrame({"y": y[new], "yes": model.predict(x[new])})
kinds = DataDefinition(classification=[BinaryClassification(target="y", prediction_labels="yes")])
report = Report([FPR()]).run(Dataset.from_pandas(frame, data_definition=kinds), None)
fpr = report.dict()["metrics"][0]["value"]
print(f"reports and tests rates of a batch, no error over many looks; FPR {100 * fpr:.1f} %")"""),
    Try("skl2onnx", "`TunedThresholdClassifierCV` as ONNX", """
import onnxruntime
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
model = TunedThresholdClassifierCV(LogisticRegression(), scoring="balanced_accuracy").fit(x[old], y[old])
made = to_onnx(model, x[:1].astype(np.float32), options={"zipmap": False})
told = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"X": x[new].astype(np.float32)})[0]
same = (told == model.predict(x[new])).sum()
print(f"labels of {same} of {len(told)} new rows are those of the tuned cut, "
      f"{(told == model.estimator_.predict(x[new])).sum()} those of a cut at 0.5")"""),
    Try("onnxmltools", "LightGBM as ONNX", """
import onnxruntime, lightgbm
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType
model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(x[old], y[old])
made = convert_lightgbm(model, initial_types=[("X", FloatTensorType([None, 5]))], zipmap=False)
told = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"X": x[new].astype(np.float32)})[0]
print(f"the model alone, no argument for a cut: {(told == model.predict(x[new])).sum()} of {len(told)} labels are "
      "those of a cut at 0.5")"""),
)  # fmt: skip


def ask(one: Try, cache: str) -> str:
    python = python_of(one.peer, cache)
    if not python.is_file():
        return f"not tried: python -m benchmarks.peers.environments {one.peer}"
    command = [str(python), "-c", ROWS + one.code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    told = [line for line in (done.stderr if done.returncode else done.stdout).splitlines() if line.strip()]
    return told[-1][:200].replace("|", "/") if told else f"ended with {done.returncode}"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("names", nargs="*", help="all unless given")
    parser.add_argument("--cache", default=str(CACHE), help="where the environments are")
    options = parser.parse_args()
    before = {row["tried"]: row["answer"] for row in load_figures("peer_states").get("rows", [])}
    rows = []
    for one in TRIES:
        version = PEERS[one.peer]["packages"][0].split("==")[1]
        told = {"peer": one.peer.removesuffix("_today"), "tried": one.tried, "version": version}
        kept = before.get(one.tried) if options.names and one.peer not in options.names else None
        rows.append({**told, "answer": kept or ask(one, options.cache)})
        print(rows[-1], flush=True)
    write_result("peer_states", {"rows": rows})


if __name__ == "__main__":
    main()
