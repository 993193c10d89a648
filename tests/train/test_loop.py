import warnings

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.data.rows import Rows
from setpoint.data.split import halves
from setpoint.decide.order import preference
from setpoint.errors import BadFeatures, BadScores, BadSetting, MissingClass, NotCertified, ShapeMismatch, SharedData
from setpoint.train.by_epochs import adam
from setpoint.train.history import score, scores_of

ASK = "minimize fnr where fpr <= 10%"


def data(size=300, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    x = torch.randn(size, 4, generator=draw) + labels.unsqueeze(-1) * torch.tensor([1.5, 0.5, 0.0, 0.0])
    return x, labels


def run(solver="implicit", **kwargs):
    torch.manual_seed(0)
    solver = sp.ImplicitThreshold(sp.ask(ASK)) if solver == "implicit" else solver
    settings = {
        "train": sp.Batches(*data(seed=0), batch_size=64, shuffle=True),
        "held_out": sp.Batches(*data(seed=1)),
        "epochs": 6,
        **kwargs,
    }
    return sp.fit(torch.nn.Linear(4, 1), ASK, solver=solver, **settings)


def test_fit_returns_a_model_with_a_threshold_that_keeps_its_bound_where_it_was_set():
    result = run(epochs=30)
    found = score(result.model, sp.Batches(*data(seed=1)))
    judged = result.point.judge(found.scores, found.labels)
    assert judged.rates["fpr"] <= 0.1 + 1e-9
    assert judged.objective == pytest.approx(result.point.objective)
    assert judged.objective < 0.6
    assert not result.model.training


def test_history_holds_soft_and_true_values_of_every_epoch():
    result = run()
    assert [row["epoch"] for row in result.history] == list(range(6))
    for row in result.history:
        for name in ("loss", "soft", "train", "held_out"):
            assert isinstance(row[name], float)
        assert row["bounds"]["fpr <= 10%"]["held_out"] <= 0.1 + 1e-9
    assert [row["solver"] for row in result.history] == ["CrossEntropy"] * 2 + ["ImplicitThreshold"] * 4
    assert result.history[-1]["prices"][0] > 0


def test_the_best_epoch_on_held_out_data_is_kept():
    result = run(epochs=8)
    best = min(row["held_out"] for row in result.history)
    assert result.history[result.best_epoch]["held_out"] == best
    found = score(result.model, sp.Batches(*data(seed=1)))
    assert sp.evaluate(ASK, found.scores, found.labels).objective == pytest.approx(best)


def test_feasible_beats_infeasible_whatever_the_objective():
    feasible = sp.evaluate("maximize recall where precision >= 50%", [0.1, 0.9, 0.2], [0, 1, 1])
    infeasible = sp.evaluate("maximize recall where precision >= 90%", [0.9, 0.1], [0, 1])
    worse = sp.evaluate("maximize recall where precision >= 90%", [0.9, 0.8, 0.1], [0, 0, 1])
    assert preference(feasible) > preference(infeasible) > preference(worse)


def test_the_threshold_is_set_on_calibration_data_when_there_are_any():
    own = sp.Batches(*data(seed=2))
    result = run(calibration=own)
    found = score(result.model, own)
    expected = sp.evaluate(ASK, found.scores, found.labels)
    assert result.point.threshold == expected.threshold
    certified = run(calibration=own, confidence=0.9)
    assert certified.point.certificate.confidence == 0.9
    assert certified.point.rates["fpr"] < 0.1


def test_any_loader_will_do():
    x, labels = data()
    weights = torch.ones(len(labels))
    for train in (
        DataLoader(TensorDataset(x, labels), batch_size=50),
        DataLoader(TensorDataset(x, labels, weights), batch_size=50),
        [{"x": x, "labels": labels, "index": torch.arange(len(labels))}],
        [(x, labels)],
    ):
        assert run(train=train, epochs=2).point.feasible


def test_training_is_reproducible_from_its_seeds():
    first, second = run(), run()
    assert torch.equal(first.model.weight, second.model.weight)
    assert first.history == second.history


def test_a_weight_of_zero_removes_a_sample():
    x, labels = data()
    spoiled = torch.cat([x, 100 * torch.randn(50, 4)]), torch.cat([labels, torch.ones(50)])
    weights = torch.cat([torch.ones(len(x)), torch.zeros(50)])
    for solver in ("implicit", None):
        plain = run(solver, train=[(x, labels)], epochs=3)
        weighted = run(solver, train=[(*spoiled, weights)], epochs=3)
        torch.testing.assert_close(plain.model.weight, weighted.model.weight)


def test_cross_entropy_needs_no_warm_start():
    result = run(sp.CrossEntropy())
    assert {row["solver"] for row in result.history} == {"CrossEntropy"}


def test_the_warm_start_fills_the_memory_and_an_anchor_is_its_loss():
    found = []

    class Spy(sp.ImplicitThreshold):
        def loss(self, batch, index=None):
            found.append((float(self.memory.weights.sum()), self.memory.scores.clone()))
            return super().loss(batch, index)

    anchored = sp.losses.WithAnchor(Spy(sp.ask(ASK), memory=128), sp.losses.ClassCrossEntropy())
    result = run(solver=anchored, epochs=4, warm_start=0.5)
    names = [row["solver"] for row in result.history]
    assert names == ["ClassCrossEntropy"] * 2 + ["WithAnchor"] * 2
    weight, scores = found[0]
    assert weight == 128
    # Scores of the last batches, whose model is trained, not of the first, which is not.
    assert scores.std() > 0.5
    run(solver=Spy(sp.ask(ASK), memory=128), epochs=4, warm_start=0.0)
    assert found[-20][0] == 0


def test_every_epoch_is_reported():
    seen = []
    run(on_epoch=seen.append, epochs=3)
    assert [row["epoch"] for row in seen] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"epochs": 0}, BadSetting, "epochs"),
        ({"warm_start": 2.0}, BadSetting, "warm_start"),
        ({"train": iter([])}, BadSetting, "no batch"),
        ({"train": [(1, 2, 3, 4)]}, ShapeMismatch, "4 parts"),
        ({"train": [{"x": 1}]}, ShapeMismatch, "needs x and labels"),
        ({"train": [torch.zeros(3)]}, ShapeMismatch, "Tensor"),
        ({"held_out": [(data()[0], torch.zeros(300))]}, MissingClass, "positive"),
        ({"train": [(data()[0] * float("nan"), data()[1])]}, BadScores, "not finite"),
    ],
)
def test_bad_calls_are_refused_by_name(change, error, says):
    with pytest.raises(error, match=says):
        run(**change)


class Wrapped(nn.Module):
    """A network whose scores are changed by a function."""

    def __init__(self, change, *norms):
        super().__init__()
        self.change, self.inner = change, nn.Sequential(nn.Linear(4, 3), *norms, nn.ReLU(), nn.Linear(3, 1))

    def forward(self, x):
        return self.change(self.inner(x))


PLAIN = {"default": lambda: None, "cross-entropy": sp.CrossEntropy, "auto": sp.Auto}
MODELS = {
    "a dict": (lambda: Wrapped(lambda z: {"logits": z}), BadScores, r"returns a dict, .* such as output\['logits'\]$"),
    "a tuple": (lambda: Wrapped(lambda z: (z, z)), BadScores, r"returns a tuple, .* such as output\[0\]$"),
    "an array": (lambda: Wrapped(lambda z: z.detach().numpy()), BadScores, "returns a ndarray, .* that tensor alone$"),
    "nothing": (lambda: Wrapped(lambda z: None), BadScores, "returns a NoneType, .* that tensor alone$"),
    "frozen": (lambda: Wrapped(lambda z: z).requires_grad_(False), BadSetting, "all its parameters are frozen"),
    "detached": (lambda: Wrapped(lambda z: z.detach()), BadSetting, "its forward detaches them"),
    "double": (
        lambda: Wrapped(lambda z: z).double(),
        BadFeatures,
        r"x is float32, .* are float64; pass x.to\(torch.flo",
    ),
    "wide": (lambda: nn.Sequential(nn.Linear(5, 1), nn.ReLU(), nn.Linear(1, 1)), BadFeatures, r"rows of shape \(4,\)"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("solver", PLAIN)
def test_networks_that_cannot_be_trained_are_refused_in_a_sentence(solver, model):
    make, error, says = MODELS[model]
    parts = [sp.Batches(*data(seed=seed)) for seed in range(3)]
    for more in ({}, {"accumulate": 2}):
        with pytest.raises(error, match=says):
            sp.fit(make(), ASK, *parts[:2], PLAIN[solver](), calibration=parts[2], epochs=1, **more)


def test_rows_of_another_precision_than_the_network_are_refused_in_a_sentence():
    x, labels = data()
    for odd in (x.double(), x.long()):
        with pytest.raises(
            BadFeatures, match=r"but the parameters of the model are float32; pass x.to\(torch.float32\)"
        ):
            sp.fit(Wrapped(lambda z: z), ASK, [(odd, labels)], [(odd, labels)], calibration=[(odd, labels)])


@pytest.mark.parametrize("solver", PLAIN)
def test_a_last_batch_of_one_row_is_normalised_by_the_running_statistics(solver):
    x, labels = data(size=65)
    parts = [sp.Batches(x, labels, batch_size=16, shuffle=True), *(sp.Batches(*data(seed=seed)) for seed in (1, 2))]
    model = Wrapped(lambda z: z, nn.BatchNorm1d(3))
    found = sp.fit(model, ASK, *parts[:2], PLAIN[solver](), calibration=parts[2], epochs=2, accumulate=2)
    assert 0 <= found.point.objective <= 1
    norm = model.train().inner[1]
    running = norm.running_mean.clone()
    one = scores_of(model, Rows(x[:1], labels[:1]))
    assert norm.training
    assert torch.equal(norm.running_mean, running)
    assert torch.equal(one, scores_of(model.eval(), Rows(x[:1], labels[:1])))


def test_a_single_row_without_running_statistics_is_refused_in_a_sentence():
    parts = [sp.Batches(*data(size=65), batch_size=16), *(sp.Batches(*data(seed=seed)) for seed in (1, 2))]
    model = Wrapped(lambda z: z, nn.BatchNorm1d(3, track_running_stats=False))
    with pytest.raises(BadSetting, match="a batch of one row has no statistics for BatchNorm"):
        sp.fit(model, ASK, *parts[:2], sp.CrossEntropy(), calibration=parts[2], epochs=1)


def test_errors_of_a_model_that_only_speak_of_types_are_its_own():
    def fails(z):
        raise RuntimeError("unknown type of pooling")

    x, labels = data()
    parts = [[(x.double(), labels)]] * 2
    with pytest.raises(RuntimeError, match=r"^unknown type of pooling$"):
        sp.fit(Wrapped(fails).double(), ASK, *parts, sp.CrossEntropy(), calibration=parts[0], epochs=1)


def test_batches_cover_every_row_once_in_a_new_order_each_pass():
    x = torch.arange(10).float().unsqueeze(-1)
    loader = sp.Batches(x, torch.zeros(10), batch_size=4, shuffle=True, seed=1)
    passes = [torch.cat([b.x for b in loader]).squeeze(-1).tolist() for _ in range(2)]
    assert len(loader) == 3
    assert sorted(passes[0]) == sorted(passes[1]) == list(range(10))
    assert passes[0] != passes[1]
    for batch in loader:
        assert torch.equal(batch.x.squeeze(-1).long(), batch.index)
    with pytest.raises(ShapeMismatch, match="10 rows"):
        sp.Batches(x, torch.zeros(9))
    with pytest.raises(BadSetting, match="batch_size"):
        sp.Batches(x, torch.zeros(10), batch_size=0)


def test_a_threshold_set_on_the_data_that_chose_the_model_is_warned_of():
    part = sp.Batches(*data(seed=1))
    for calibration in (None, part):
        with pytest.warns(SharedData, match="pass calibration="):
            sp.fit(torch.nn.Linear(4, 1), ASK, part, part, sp.CrossEntropy(), calibration=calibration, epochs=1)


def test_confidence_without_calibration_keeps_half_of_the_held_out_rows_for_it():
    train, held_out = sp.Batches(*data()), sp.Batches(*data(seed=1), batch_size=37)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SharedData)
        result = sp.fit(torch.nn.Linear(4, 1), ASK, train, held_out, epochs=2, confidence=0.5)
    rows = len(held_out.resident.labels)
    first, second = halves(held_out)
    sizes = [sum(len(b.labels) for b in half) for half in (first, second)]
    assert sum(sizes) == rows
    assert abs(sizes[0] - sizes[1]) <= 1
    joined = torch.cat([b.x for b in (*first, *second)])
    assert torch.equal(joined.sort(0).values, held_out.resident.x.sort(0).values)
    assert result.point.certificate.samples < 0.6 * rows


SAME = {
    "the loader": lambda rows, batches: (batches, batches),
    "equal rows": lambda rows, batches: (batches, sp.Batches(*(part.clone() for part in rows))),
    "some of its rows": lambda rows, batches: (batches, [(rows[0][50:150], rows[1][50:150])]),
    "mixed with new rows": lambda rows, batches: (
        batches, sp.Batches(*(torch.cat([part, new]) for part, new in zip(rows, data(seed=7)))),
    ),
    "a list": lambda rows, batches: ([rows], [(rows[0].clone(), rows[1])]),
    "a dataset": lambda rows, batches: [DataLoader(data, batch_size=size) for data in [TensorDataset(*rows)]
                                        for size in (30, 60)],
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_no_certificate_comes_from_rows_that_train_or_choose_the_model(name):
    known, same = SAME[name](data(), sp.Batches(*data(), batch_size=50, shuffle=True))
    other = sp.Batches(*data(seed=1))
    count = "(all|300 of 300|100 of 100|300 of 600)"
    for train, held_out in ((known, other), (other, known)):
        if same is held_out:
            continue  # As if it were not given.
        with pytest.warns(NotCertified, match=f"{count} calibration rows train or choose .* without a certificate"):
            result = sp.fit(nn.Linear(4, 1), ASK, train, held_out, calibration=same, confidence=0.5)
        assert result.point.certificate is None
    with pytest.warns(NotCertified, match="all calibration rows train or choose the model"):
        assert sp.fit(nn.Linear(4, 1), ASK, known, known, confidence=0.5).point.certificate is None


def test_held_out_rows_that_are_calibration_rows_too_are_shared_out_for_a_certificate():
    parts = [sp.Batches(*data(seed=seed)) for seed in range(2)]
    both = [sp.fit(nn.Linear(4, 1), ASK, *parts, calibration=own, confidence=0.5).point for own in (None, parts[1])]
    assert both[0] == both[1]
    assert both[0].certificate.samples < 150


def test_training_rows_as_calibration_rows_are_warned_of():
    parts = [sp.Batches(*data(seed=seed)) for seed in range(2)]
    with pytest.warns(SharedData, match="the calibration rows train or choose the model too"):
        sp.fit(nn.Linear(4, 1), ASK, *parts, calibration=parts[0])


def test_rows_that_are_equal_by_chance_allow_a_certificate():
    """Of 216 kinds of rows most are in every part."""

    def coarse(seed):
        x, labels = data(seed=seed)
        return sp.Batches(x[:, :3].clamp(-1, 1.5).mul(2).round(), labels)

    point = sp.fit(nn.Linear(3, 1), ASK, coarse(0), coarse(1), calibration=coarse(2), confidence=0.5).point
    assert point.certificate is not None


def test_a_model_is_not_thrown_away_for_want_of_a_certificate():
    parts = [sp.Batches(*data(seed=seed)) for seed in range(3)]
    ask = "minimize fnr where fpr <= 0.1%"
    with pytest.warns(NotCertified, match="needs 2,995 negatives"):
        result = sp.fit(torch.nn.Linear(4, 1), ask, parts[0], parts[1], calibration=parts[2], confidence=0.95, epochs=1)
    assert result.point.certificate is None


def test_a_network_decays_and_what_its_solver_learns_does_not():
    model, prices = nn.Sequential(nn.Linear(2, 1), nn.ReLU()), nn.Parameter(torch.ones(3))
    solver = sp.CrossEntropy()
    solver.learned = prices
    optimizer = adam(model, solver, 3)
    decays = {id(p): decay for p, decay in optimizer.parameters}
    assert decays == {**{id(p): 1e-4 for p in model.parameters()}, id(prices): 0}
    assert optimizer.rate == 0.003
    convolutional = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2, 1))
    assert adam(convolutional, solver, 3).rate == 0.001
    linear = adam(nn.Linear(2, 1), solver, 3)
    assert (linear.rate, {decay for _, decay in linear.parameters}) == (0.01, {0})


def test_the_default_stops_a_network_by_its_loss_and_others_by_the_exact_metric():
    draw = torch.Generator().manual_seed(0)
    parts = []
    for _ in range(3):
        labels = (torch.arange(200) % 2).float()
        parts.append((torch.randn(200, 8, generator=draw) + 0.3 * labels.unsqueeze(-1), labels))
    for solver in (None, sp.CrossEntropy()):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
        train = sp.Batches(*parts[0], batch_size=20, shuffle=True)
        result = sp.fit(model, "minimize fnr where fpr <= 10%", train, [parts[1]], solver, calibration=[parts[2]])
        rows = [row for row in result.history if row["solver"] == "CrossEntropy"]
        if solver is None:
            losses = [row["held_out_loss"] for row in rows]
            # Noise fits this little table well: the least loss comes early, and training stops after seven more.
            assert losses.index(min(losses)) == len(rows) - 8
            assert len(rows) < 30
        else:
            assert len(rows) == 30
            assert result.best_epoch == [row["held_out"] for row in rows].index(min(row["held_out"] for row in rows))
