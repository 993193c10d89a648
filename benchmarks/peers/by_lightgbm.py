"""LightGBM: at most 500 trees, stopped early by the loss on validation rows; not a linear model."""

from __future__ import annotations

import lightgbm

from benchmarks.peers.exchange import Task


def main() -> None:
    task = Task()
    model = lightgbm.LGBMClassifier(n_estimators=500, learning_rate=0.05, n_jobs=1, verbose=-1, random_state=0)
    held_out = [(task.others["validation"], task.validation_labels)]
    stop = lightgbm.early_stopping(30, verbose=False)
    model.fit(task.x, task.labels, eval_set=held_out, callbacks=[stop])
    scores = [model.booster_.predict(x, raw_score=True) for x in task.others.values()]
    task.add_scores(f"{model.best_iteration_} trees", *scores)
    task.answer(lightgbm.__version__)


if __name__ == "__main__":
    main()
