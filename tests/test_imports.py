"""What an import costs and brings: public names are loaded when asked for, and help needs no torch."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import setpoint as sp
from marks import quick_first, slow
from setpoint.run.artefact import save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans

SOURCE = Path(sp.__file__)
HEAVY = {"torch", "numpy", "scipy", "polars", "typer", "rich", "sklearn", "matplotlib", "cooper", "safetensors"}


def loaded_by(code: str) -> set[str]:
    """The packages and our own rooms in memory after some code has run in a process of its own."""
    named = "{'.'.join(name.split('.')[:depth]) for name in sys.modules for depth in (1, 2)}"
    tail = f"\nimport json, sys\nprint('\\n' + json.dumps(sorted({named})))"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code + tail], env=environment, capture_output=True, text=True, timeout=100, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_import_alone_loads_nothing_heavy_and_knows_its_version():
    loaded = loaded_by("import setpoint\nassert setpoint.__version__\nassert 'fit' in dir(setpoint)")
    assert loaded & {*HEAVY, "ast", "urllib"} == set()
    assert "setpoint" in loaded


def test_fitting_and_calibrating_load_none_of_the_optional_packages():
    loaded = loaded_by("from setpoint import fit, calibrate, ask, Batches")
    assert "torch" in loaded
    assert loaded & {"polars", "typer", "rich", "sklearn", "matplotlib", "cooper", "safetensors"} == set()


@slow
def test_the_command_that_fits_does_not_load_the_statistics_of_scipy():
    # They take longer to import than many a table takes to fit.
    code = "import sys, setpoint.commands.fit\nassert 'scipy' in sys.modules\nassert 'scipy.stats' not in sys.modules"
    assert "setpoint" in loaded_by(code)


@slow
def test_training_loads_no_compiler():
    # The optimizers of torch load its compiler, which takes longer than the training of a small table.
    code = """
import torch, setpoint as sp
x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
parts = [sp.Batches(x[k::3], labels[k::3]) for k in range(3)]
ask = "minimize fnr where fpr <= 10%"
sp.fit(torch.nn.Linear(1, 1), ask, *parts[:2], calibration=parts[2])
sp.fit(torch.nn.Linear(1, 1), ask, *parts[:2], sp.ImplicitThreshold(sp.ask(ask)), calibration=parts[2], epochs=2)
network = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
sp.fit(network, ask, *parts[:2], calibration=parts[2], epochs=2)
"""
    loaded = loaded_by(code)
    assert "torch" in loaded
    assert "sympy" not in loaded


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["compare", "--help"], ["--version"], []])
def test_help_loads_no_torch(arguments):
    code = f"from setpoint.cli import main\ntry: main({arguments!r})\nexcept SystemExit as end: assert not end.code"
    loaded = loaded_by(code)
    assert "typer" in loaded
    assert loaded & {"torch", "numpy", "scipy", "polars", "cooper", "safetensors"} == set()


def test_the_stub_and_the_list_of_names_agree():
    extras = {"SetpointClassifier", "Tuned", "export_onnx", "load_run"}
    assert dir(sp) == sorted({*sp.__all__, *extras})
    assert not extras & set(sp.__all__)


def test_every_name_resolves_and_stays():
    for name in dir(sp):
        assert getattr(sp, name) is getattr(sp, name)
        assert name in vars(sp)
    everything: dict[str, object] = {}
    exec("from setpoint import *", everything)
    assert set(sp.__all__) <= set(everything)


@slow
def test_the_top_shows_its_public_names_and_nothing_else():
    code = "import setpoint as sp\nsp.fit, sp.lp, sp.losses\nassert 'solve' not in dir(sp)\nassert len(dir(sp)) < 50"
    assert "torch" in loaded_by(code)


@pytest.mark.parametrize("place", ["losses", "classes", "steps", "methods", "lp"])
def test_a_named_place_holds_what_it_lists(place):
    module = getattr(sp, place)
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(module, name) for name in module.__all__)
    assert not set(module.__all__) & set(sp.__all__), "a name has two places"


def test_the_names_are_the_real_ones():
    from setpoint.lp.layer import solve  # noqa: PLC0415
    from setpoint.measure.rate import fpr  # noqa: PLC0415

    assert sp.fpr is fpr
    assert sp.lp.solve is solve
    assert pickle.loads(pickle.dumps(sp.fpr <= 0.01)) == (sp.fpr <= 0.01)
    assert pickle.loads(pickle.dumps(sp.Problem)) is sp.Problem
    assert copy.deepcopy(sp.ask("minimize fnr where fpr <= 1%")) == sp.minimize(sp.fnr, sp.fpr <= 0.01)


def test_a_typo_is_an_attribute_error_that_names_the_right_one():
    with pytest.raises(AttributeError, match=re.escape("has no attribute 'minimise'; did you mean 'minimize'?")):
        _ = sp.minimise
    with pytest.raises(AttributeError, match=r"has no attribute 'zzzz'$"):
        _ = sp.zzzz
    with pytest.raises(ImportError, match="Lagrangean"):
        exec("from setpoint import Lagrangean")
    assert not hasattr(sp, "nothing_of_the_kind")
    assert hasattr(sp, "Lagrangian")


def test_the_version_is_that_of_the_project():
    project = SOURCE.parents[2] / "pyproject.toml"
    assert f'\nversion = "{sp.__version__}"\n' in project.read_text()


def test_the_extra_all_has_what_the_commands_of_the_readme_need():
    root = SOURCE.parents[2]
    (extras,) = re.findall(r'^all = \["setpoint\[(.*)\]"\]$', (root / "pyproject.toml").read_text(), re.M)
    commands = re.findall(r"^    setpoint (\w+)", (root / "README.md").read_text(), re.M)
    needs = {"export": "export"}
    assert {"cli", *(needs[command] for command in commands if command in needs)} <= {*extras.split(",")}


@pytest.mark.parametrize("package", ["polars", "safetensors"])
@slow
def test_the_artefact_without_its_extra_says_what_to_install(package):
    code = f"import sys\nsys.modules[{package!r}] = None\nimport setpoint.run.artefact"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    sentence = f"this needs the package {package}; install it with: pip install 'setpoint[table]'"
    assert ended.stderr.splitlines()[-1] == f"setpoint.errors.MissingPackage: {sentence}"


@pytest.mark.parametrize("model", quick_first(["trees", "linear", "mlp"]))
def test_answering_loads_no_pytorch_and_no_training_code(model, tmp_path):
    solver = {} if model == "trees" else {"solver": "cross-entropy"}
    table = fit_table(loans(), "default", sp.ask("minimize fnr where fpr <= 20%"), Settings(model=model, **solver))
    run, new, out = save_run(tmp_path / "run", table), tmp_path / "new.csv", tmp_path / "out.csv"
    loans().drop("default").write_csv(new)
    for code in (
        f"import polars, setpoint as sp; sp.load_run({str(run)!r}).answer(polars.read_csv({str(new)!r}))",
        f"from setpoint.cli import main\ntry: main(['predict', {str(run)!r}, {str(new)!r}, '--out', {str(out)!r}, "
        "'--keep', 'job', '--quiet'])\n"
        "except SystemExit: pass",
    ):
        loaded = loaded_by(code)
        assert "setpoint.serve" in loaded
        training = {"torch", "scipy.special", "lightgbm", "sklearn", "setpoint.train", "setpoint.run"}
        assert loaded & {*training, "pydantic", "rich", "numpy.ma"} == set()
    assert len(out.read_text().splitlines()) == 401


@pytest.mark.parametrize("given", ["", "['--version']"])
def test_a_process_that_ends_does_not_look_through_all_that_it_loaded(given):
    # The caller of `main` with arguments lives on, and wants its garbage collected.
    code = (
        f"import gc\nfrom setpoint.cli import main\ntry: main({given})\nexcept SystemExit: print(gc.get_freeze_count())"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parents[1])}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=100, check=True)
    assert (int(done.stdout.splitlines()[-1]) > 0) == (given == "")
