"""`tinyfin demo`: learns, reports, writes; the same seed gives the same weights."""

import doctest
import hashlib
import json
import os
import subprocess
import sys
import types

import numpy as np
import pytest

import tinyfin
from tinyfin.cli import demo, main
from tinyfin.io import load, load_checkpoint

KEYS = {"accuracy", "loss", "epochs", "seconds", "backend", "threads", "isa", "weights_sha256"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One run with default settings, in a process of its own."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "tinyfin", "demo", "--json"]
    return folder, subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=folder, timeout=300
    )


def run(capsys, *args):
    code = main.main(["demo", *args])
    return code, *capsys.readouterr()


def test_examples():
    assert doctest.testmod(demo).failed == 0


def test_digits_are_the_published_ones():
    images, labels = demo.load_digits()
    assert images.shape == (1797, 1, 8, 8) and images.min().item() == 0 and images.max().item() == 1
    assert np.bincount(labels.numpy()).tolist() == [
        178,
        182,
        177,
        183,
        181,
        182,
        181,
        179,
        174,
        180,
    ]
    content = (images * 16).to(tinyfin.uint8).numpy().tobytes() + labels.to(
        tinyfin.uint8
    ).numpy().tobytes()
    assert (
        hashlib.sha256(content).hexdigest()
        == "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
    )
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.load_digits(return_X_y=True)
    assert np.array_equal(images.numpy().reshape(-1, 64) * 16, x) and np.array_equal(
        labels.numpy(), y
    )


def test_json_is_one_object_and_alone_on_standard_output(whole):
    _, shown = whole
    assert shown.returncode == 0, shown.stderr
    result = json.loads(shown.stdout)
    assert shown.stdout.count("\n") == 1 and set(result) == KEYS
    assert result["epochs"] == demo.EPOCHS and result["backend"] == tinyfin.backend_name()
    assert shown.stderr.count("held-out accuracy") == demo.EPOCHS and "checkpoint:" in shown.stderr


def test_it_learns(whole):
    result = json.loads(whole[1].stdout)
    assert result["accuracy"] >= 0.97 and result["loss"] < 0.1


def test_checkpoint_holds_the_run(whole):
    folder, shown = whole
    model = demo.build_model()
    user = load_checkpoint(folder / "tinyfin-demo.safetensors", model=model)
    result = json.loads(shown.stdout)
    assert demo.weights_sha256(model) == result["weights_sha256"]
    assert user["epochs"] == demo.EPOCHS and user["history"][-1]["accuracy"] == result["accuracy"]
    training = demo.Training(5, 1)
    training.model.load_state_dict(model.state_dict())
    assert training.evaluate()[0] == result["accuracy"]


def test_digest_is_over_parameters_in_the_order_of_their_names(whole):
    folder, shown = whole
    tensors = load(folder / "tinyfin-demo.safetensors")
    names = sorted(n for n in tensors if n.startswith("model."))
    content = b"".join(tensors[n].numpy().tobytes() for n in names)
    assert hashlib.sha256(content).hexdigest() == json.loads(shown.stdout)["weights_sha256"]


def test_picture_or_a_word_why_not(whole):
    folder, shown = whole
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert "not installed" in shown.stderr
    else:
        assert (folder / "tinyfin-demo.png").read_bytes()[:4] == b"\x89PNG"


def test_seed_decides_the_weights(tmp_path, capsys):
    def digest(seed):
        _, out, _ = run(capsys, "--epochs", "1", "--seed", seed, "--json", "--out", str(tmp_path))
        return json.loads(out)["weights_sha256"]

    assert digest("1") == digest("1") != digest("2")


SWITCHES = [
    {"TINYFIN_THREADS": "1"},
    {"TINYFIN_THREADS": "2"},
    *({"TINYFIN_ISA": name} for name, there in tinyfin.isa_list() if there),
    {"TINYFIN_ISA": "sse2", "TINYFIN_THREADS": "2"},
]


def demo_result(folder, **env):
    """The result of two epochs in a process of its own under switches."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TINYFIN_")}
    command = [sys.executable, "-m", "tinyfin", "demo", "--epochs", "2", "--json"]
    done = subprocess.run(
        [*command, "--out", str(folder)],
        env={**clean, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("deterministic", ["0", "1"])
def test_threads_and_instruction_sets_do_not_change_the_weights(deterministic, tmp_path):
    """Two epochs of the whole of it: data, model, losses, optimizer, held-out accuracy."""
    results = []
    for switches in SWITCHES:
        result = demo_result(tmp_path, TINYFIN_DETERMINISTIC=deterministic, **switches)
        assert result["isa"] == switches.get("TINYFIN_ISA", result["isa"])
        assert result["threads"] == int(switches.get("TINYFIN_THREADS", result["threads"]))
        results.append((result["weights_sha256"], result["accuracy"], result["loss"]))
    assert len(set(results)) == 1, dict(zip(map(str, SWITCHES), results))


def test_devices_do_not_change_the_weights(gpu, tmp_path):
    """In deterministic mode; nothing runs on the CPU."""
    results = [
        demo_result(tmp_path, TINYFIN_DETERMINISTIC="1", TINYFIN_FALLBACK="0", TINYFIN_BACKEND=name)
        for name in ("cpu", gpu)
    ]
    assert [r["backend"] for r in results] == ["cpu", gpu]
    assert results[0]["weights_sha256"] == results[1]["weights_sha256"]
    assert results[0]["accuracy"] == results[1]["accuracy"] > 0.85


def test_for_people(tmp_path, capsys):
    code, out, err = run(capsys, "--epochs", "1", "--out", str(tmp_path / "made"))
    assert code == 0 and err == ""
    assert "epoch   1/1   loss" in out and "held-out digits" in out
    assert (tmp_path / "made" / "tinyfin-demo.safetensors").exists()


def test_without_matplotlib(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    _, out, _ = run(capsys, "--epochs", "1", "--out", str(tmp_path))
    assert "matplotlib is not installed" in out and not (tmp_path / "tinyfin-demo.png").exists()


@pytest.mark.parametrize(
    "name, text",
    [
        ("nonsense", "no backend named 'nonsense'"),
        ("null", "computes nothing"),
        ("cpu:x", "named 'cpu:0'"),
    ],
)
def test_backend_that_is_not_there(name, text, capsys, tmp_path):
    code, out, err = run(capsys, "--backend", name, "--out", str(tmp_path / "x"))
    assert code == 2 and out == "" and text in err and "are available: cpu" in err
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "args", [("--epochs", "0"), ("--epochs", "x"), ("--seed", "-1"), ("--seed", str(2**63))]
)
def test_numbers_out_of_range(args, capsys):
    with pytest.raises(SystemExit) as e:
        main.main(["demo", *args])
    assert e.value.code == 2 and args[0] in capsys.readouterr().err


def test_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    code, _, err = run(capsys, "--epochs", "1", "--out", str(tmp_path / "file"))
    assert code == 1 and f"cannot write to {str(tmp_path / 'file')!r}" in err


def test_folder_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    """Said before the training, not after it."""

    def refuse(**kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    code, out, err = run(capsys, "--out", str(tmp_path))
    assert code == 1 and "epoch" not in out + err and "Permission denied; use --out" in err


def test_a_broken_matplotlib_costs_only_the_picture(tmp_path, capsys, monkeypatch):
    broken = types.ModuleType("matplotlib.figure")
    monkeypatch.setitem(sys.modules, "matplotlib", types.ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", broken)
    broken.Figure = lambda **kwargs: 1 / 0
    code, out, _ = run(capsys, "--epochs", "1", "--json", "--out", str(tmp_path))
    assert code == 0 and json.loads(out)["epochs"] == 1


def test_backend_of_the_environment(tmp_path):
    env = {**os.environ, "TINYFIN_BACKEND": "null"}
    command = [sys.executable, "-m", "tinyfin", "demo", "--out", str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "computes nothing" in done.stderr
