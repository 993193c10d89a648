"""TFCO: minimise the false negative rate, the false positive rate bounded, by its Lagrangian optimizer of TF 1."""

from __future__ import annotations

from importlib.metadata import version

import tensorflow as tf
import tensorflow_constrained_optimization as tfco

from benchmarks.peers.exchange import Task


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    task = Task()
    x, labels = tf.constant(task.x, tf.float32), tf.constant(task.labels, tf.float32)
    for rate, price_rate in task.settings():
        weight = tf.Variable(task.start[:-1], dtype=tf.float32)
        bias = tf.Variable(task.start[-1], dtype=tf.float32)

        def predictions(weight: tf.Variable = weight, bias: tf.Variable = bias) -> tf.Tensor:
            return tf.linalg.matvec(x, weight) + bias

        context = tfco.rate_context(predictions, labels=lambda: labels)
        problem = tfco.RateMinimizationProblem(
            tfco.false_negative_rate(context), [tfco.false_positive_rate(context) <= task.bound]
        )
        optimizer = tfco.LagrangianOptimizerV1(
            tf.compat.v1.train.AdamOptimizer(rate), num_constraints=problem.num_constraints,
            constraint_optimizer=tf.compat.v1.train.GradientDescentOptimizer(price_rate),
        )  # fmt: skip
        for step in range(1, task.steps + 1):
            optimizer.minimize(problem, var_list=[weight, bias, *problem.trainable_variables])
            if step % task.look_every == 0:
                task.add(f"{rate:g}, {price_rate:g}, step {step}", weight.numpy(), float(bias.numpy()))
    task.answer(f"{version('tensorflow-constrained-optimization')} on TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
