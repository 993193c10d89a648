"""Find 90 % of malignant tumours: a forest as it comes, the same forest at the right threshold, a model trained for it.

python examples/keep_your_model.py
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split

import setpoint as sp

ASK = "maximize tnr where recall >= 90%"


def main() -> None:
    data = load_breast_cancer()
    names = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(data.data, names, test_size=0.3, stratify=names, random_state=0)
    X_model, X_cut, y_model, y_cut = train_test_split(X, y, test_size=0.45, stratify=y, random_state=0)

    forest = RandomForestClassifier(random_state=0).fit(X_model, y_model)
    recall = recall_score(y_test, forest.predict(X_test), pos_label="malignant")
    print(f"the forest, cut at a half: recall {recall:.3f}")

    tuned = sp.Tuned(forest, ask=ASK, confidence=0.95, positive="malignant").fit(X_cut, y_cut)
    print(f"the same forest, cut at {tuned.threshold_:.3f}: {tuned.judge(X_test, y_test)}")
    print(tuned.operating_point_.certificate)

    trained = sp.SetpointClassifier(ASK, positive="malignant", calibration=0.4, confidence=0.95).fit(X, y)
    print(f"a linear model trained for it: {trained.judge(X_test, y_test)}")
    for row in trained.comparison_:
        print(f"  {row['name']}{', chosen' if row['chosen'] else ''} {row['note']}")


if __name__ == "__main__":
    main()
