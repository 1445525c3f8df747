"""The table of backends: default, list, support, third parties, mixed devices."""

import pytest
from backends.isolated import FAKE, run

import tinyfin as tf
from tinyfin.backends import base


@pytest.fixture
def restored():
    """Goes back to the default backend."""
    yield
    tf.backend_set("cpu")


def test_list_and_names():
    known = tf.backend_list()
    assert known["cpu"] is None and known["null"] is None and next(iter(known)) == "cpu"
    assert tf.backend_name() == "cpu" and tf.default_device() == tf.device("cpu")


@pytest.mark.usefixtures("restored")
def test_backend_set_changes_what_is_created_afterwards():
    before = tf.ones(2)
    assert tf.backend_set("null") is True and tf.backend_name() == "null"
    assert tf.default_device().type == "null"
    import numpy as np

    for t in (
        tf.tensor([1.0]), tf.from_numpy(np.ones(2)), tf.zeros(2), tf.ones(2), tf.empty(2), tf.full((2,), 1), tf.eye(2),
        tf.arange(3), tf.linspace(0, 1, 3), tf.rand(2), tf.randn(2), tf.randint(3, (2,)), tf.randperm(3), tf.as_tensor([1]),
        tf.Tensor(2), tf.nn.Linear(2, 3).weight, tf.normal(0.0, 1.0, (2,)),
    ):  # fmt: skip
        assert t.device.type == "null", t
    assert before.device.type == "cpu" and tf.zeros(1, device="cpu").device.type == "cpu"
    assert tf.ones_like(before).device.type == "cpu" and before.new_zeros(2).device.type == "cpu"
    assert (
        tf.backend_set("null:3") and tf.zeros(1).device.index == 3 and tf.backend_name() == "null:3"
    )
    assert tf.backend_set("cpu") is True and tf.zeros(1).device.type == "cpu"


@pytest.mark.parametrize(
    "name", ["moon", "", "cpu:x", "cpu:1", "null:256", "null:", "cpu:", "opengl:99"]
)
def test_backends_that_are_not_to_be_had(name):
    base.STATE["warned"].clear()
    with pytest.warns(RuntimeWarning, match="no backend named|not available"):
        assert tf.backend_set(name) is False
    assert tf.backend_name() == "cpu" and tf.zeros(1).device.type == "cpu"


@pytest.mark.parametrize("name", [None, 3, tf.device("cpu")])
def test_names_are_strings(name):
    with pytest.raises(TypeError, match="backend_set: name"):
        tf.backend_set(name)


def test_inexact_kernels_are_refused_in_deterministic_mode():
    code = (
        FAKE
        + """
class Loose(Fake):
    name = device = "loose"
    inexact = ("elementwise",)
base.register(Loose())
for name in "fake", "loose":
    x = tf.ones(2, device=name)
    print((x + 1).device.type, x.add_(1).device.type)
    with tf.deterministic():
        for call in lambda: x + 1, lambda: x.add_(1), lambda: x.clone():
            try:
                print(call().device.type)
            except RuntimeError as error:
                print(error)
    print((x + 1).device.type)
print((tf.ones(2) + 1).tolist())
"""
    )
    refused = "refused in deterministic mode: it cannot keep the promise of equal bits"
    assert run(code)[0] == [
        *("fake fake", "fake", "fake", "fake", "fake"),
        *("loose loose", f"add: {refused}", f"add_: {refused}", "loose", "loose", "[2.0, 2.0]"),
    ]


def test_support():
    table = tf.backend_support()
    assert table["add"]["cpu"] == "native" and table["add"]["null"] == "native"
    assert table["reshape"]["null"] == "native"
    assert {v for row in table.values() for v in row.values()} <= {
        "native",
        "formula",
        "falls back",
    }
    assert all(row["cpu"] in ("native", "formula") for row in table.values())
    assert len(table) > 300 and "cast" in table and "uniform_" in table
    assert set(table["add"]) == {n for n, why in tf.backend_list().items() if why is None}


def test_mixed_devices_are_an_error_that_names_them():
    x, y = tf.ones(2), tf.ones(2, device="null")
    z = tf.ones(2, device="null:1")
    for call in (
        lambda: x + y, lambda: y + x, lambda: tf.cat([x, y]), lambda: tf.where(x > 0, y, x), lambda: y.add_(x),
        lambda: tf.matmul(x, y), lambda: y + z, lambda: tf.nn.functional.mse_loss(x, y),
        lambda: tf.nn.functional.linear(x, tf.ones(3, 2), tf.ones(3, device="null")),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"different devices .*null"):
            call()
    assert (y + 1).device.type == "null" and (2 * y).device.type == "null"
    a, b = tf.tensor(2.0), tf.tensor(2.0, device="null")
    for call in (lambda: a.add_(b), lambda: a.mul_(y), lambda: x + b, lambda: tf.cat([a[None], y]),
                 lambda: tf.matmul(a, y), lambda: tf.where(a > 0, y, z)):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"different devices .*null|two matrices|dimension"):
            call()


def test_switch_at_import():
    code = "import tinyfin as tf; print(tf.backend_name(), tf.zeros(2).device)"
    assert run(code, TINYFIN_BACKEND="null")[0] == ["null null:0"]
    for name in ("moon", "opengl:99"):
        out, err = run(code, TINYFIN_BACKEND=name)
        assert out == ["cpu cpu"] and name in err and err.startswith("<string>:1: RuntimeWarning")


def test_warnings_are_at_the_line_that_led_to_them(tmp_path):
    """At imports of the package, however deep, and at calls."""
    (tmp_path / "tool.py").write_text(
        "\n\nfrom tinyfin import nn\nimport tinyfin as tf\ntf.backend_set('sun')\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tool"
    err = run(code, TINYFIN_BACKEND="moon")[1]
    at = [
        line.partition(" RuntimeWarning: tinyfin: there is no backend named ")
        for line in err.splitlines()
    ]
    assert [(a, b[:6]) for a, mark, b in at if mark] == [
        (f"{tmp_path / 'tool.py'}:3:", "'moon'"),
        (f"{tmp_path / 'tool.py'}:5:", "'sun';"),
    ]


def test_third_parties_register():
    out, _ = run(
        FAKE
        + """
print("fake" in tf.backend_list(), tf.backend_set("fake"), tf.default_device())
x = tf.tensor([1.0, 2.0, 3.0])
y = x * 2 + 1
print(y.device, y.tolist(), tf.zeros(2, device="fake:2").device)
print(tf.backend_support()["add"]["fake"], tf.backend_support()["matmul"]["fake"], tf.backend_support()["softmax"]["fake"])
tf.backend_set("cpu")
print(Fake.log, tf.zeros(1).device, y[1:].exp().device)
"""
    )
    assert out[0] == "True True fake:0"
    assert out[1] == "fake:0 [3.0, 5.0, 7.0] fake:2"
    assert out[2] == "native falls back formula"
    assert out[3] == "['on', 'off'] cpu fake:0"


@pytest.mark.parametrize(
    "text, words",
    [
        ("base.register(Fake())", "registered already"),
        ("base.register(3)", "expected an instance"),
        ("class A(Fake): name = ''\nbase.register(A())", "no name"),
        ("class A(Fake): name = 'a:b'\nbase.register(A())", "no name"),
        ("class A(Fake): device = None\nbase.register(A())", "no name"),
        (
            "for i in range(9):\n  base.register(type('B', (Fake,), dict(name=f'b{i}', device=f'd{i}'))())",
            "slots are taken",
        ),
    ],
)
def test_registrations_that_are_refused(text, words):
    block = "\n".join("    " + line for line in text.splitlines())
    out, _ = run(
        FAKE
        + f"""
try:
{block}
    print("accepted")
except Exception as e:
    print(type(e).__name__, e)
print(tf.ones(2).sum().item())
"""
    )
    assert words in out[0] and out[1] == "2.0"


def test_backends_that_fail_to_open_leave_the_default():
    out, _ = run(
        FAKE
        + """
class Broken(Fake):
    name = device = "broken"
    def activate(self): raise OSError("no such card")
class Absent(Fake):
    name = device = "absent"
    def missing(self): return "no card here; buy one"
base.register(Broken())
base.register(Absent())
try:
    tf.backend_set("broken")
except OSError as e:
    print("raised", e)
print(tf.backend_name(), tf.zeros(1).device)
print(tf.backend_set("absent"), tf.backend_list()["absent"])
for call in (lambda: tf.zeros(1, device="absent"), lambda: tf.ones(1).to("absent")):
    try:
        call()
    except RuntimeError as e:
        print(e)
"""
    )
    assert out[:3] == ["raised no such card", "cpu cpu", "False no card here; buy one"]
    assert (
        all("absent is not available: no card here; buy one" in line for line in out[3:])
        and len(out) == 5
    )


def test_entry_points(tmp_path):
    (tmp_path / "otherfin.py").write_text(
        "import tinyfin\n"
        "class Other(tinyfin.Backend):\n"
        "    name = device = 'other'\n"
        "    def allocate(self, nbytes, index): return bytearray(nbytes)\n"
        "class Broken:\n"
        "    def __init__(self): raise ValueError('half built')\n"
    )
    info = tmp_path / "otherfin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: otherfin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tinyfin.backends]\nother = otherfin:Other\nbroken = otherfin:Broken\n"
    )
    code = "import sys, tinyfin as tf\nprint('otherfin' in sys.modules)\n"
    out, err = run(
        code + "print('other' in tf.backend_list(), tf.backend_set('other'), tf.zeros(2).tolist())",
        tmp_path,
    )
    assert out == ["False", "True True [0.0, 0.0]"]
    assert "backend broken could not be loaded: half built" in err
    assert run(code + "print(tf.ones(2, device='other').device)", tmp_path)[0][1] == "other:0"
    assert run("import tinyfin as tf; print(tf.backend_name())", tmp_path, TINYFIN_BACKEND="other")[
        0
    ] == ["other"]
