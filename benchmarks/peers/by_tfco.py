"""TFCO: minimise the false negative rate, the false positive rate bounded, by its Lagrangian optimizer for graphs.

Each of its three smooth losses has the nine settings: the hinge, its default; cross-entropy, as in the papers; and the
softmax, which for two classes is the sigmoid that the others here learn by.
"""

from __future__ import annotations

from importlib.metadata import version

import tensorflow as tf
import tensorflow_constrained_optimization as tfco

from benchmarks.peers.exchange import Task

LOSSES = {"hinge": tfco.HingeLoss, "cross-entropy": tfco.SoftmaxCrossEntropyLoss, "softmax": tfco.SoftmaxLoss}


def train(task: Task, name: str) -> None:
    """All settings of one loss, in one graph."""
    v1 = tf.compat.v1
    threads = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with tf.Graph().as_default(), v1.Session(config=threads) as session:
        rate, price_rate = v1.placeholder(tf.float32, ()), v1.placeholder(tf.float32, ())
        x, labels = tf.constant(task.x, tf.float32), tf.constant(task.labels, tf.float32)
        theta = v1.get_variable("theta", initializer=tf.constant(task.start, tf.float32), use_resource=True)
        context = tfco.rate_context(tf.linalg.matvec(x, theta[:-1]) + theta[-1], labels=labels)
        loss = LOSSES[name]()
        problem = tfco.RateMinimizationProblem(
            tfco.false_negative_rate(context, penalty_loss=loss),
            [tfco.false_positive_rate(context, penalty_loss=loss) <= task.bound],
        )
        optimizer = tfco.LagrangianOptimizerV1(
            v1.train.AdamOptimizer(rate), constraint_optimizer=v1.train.GradientDescentOptimizer(price_rate)
        )
        step_once, restart = optimizer.minimize(problem), v1.global_variables_initializer()
        for setting in task.settings():
            session.run(restart)
            given = dict(zip((rate, price_rate), setting))
            for step in range(1, task.steps + 1):
                session.run(step_once, given)
                if step % task.look_every == 0:
                    weights = session.run(theta)
                    task.add(f"{name}, {setting[0]:g}, {setting[1]:g}, step {step}", weights[:-1], float(weights[-1]))


def main() -> None:
    task = Task()
    for name in LOSSES:
        train(task, name)
    task.answer(f"{version('tensorflow-constrained-optimization')} on TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
