"""`tinyfin info`: every fact, for people and as JSON."""

import doctest
import json

import tinyfin
from tinyfin.cli import info, main


def test_examples():
    assert doctest.testmod(info).failed == 0


def test_for_people(capsys):
    assert main.main(["info"]) == 0
    shown = capsys.readouterr().out
    for text in (
        "tinyfin",
        tinyfin.__version__,
        "python",
        "platform",
        "processor",
        "instruction set",
        "threads",
        "backend",
    ):
        assert text in shown
    assert "available" in shown.partition("backends")[2]


def test_as_json(capsys):
    assert main.main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["version"] == tinyfin.__version__
    assert facts["isa"] in facts["isas"] and facts["processor"]
    assert facts["threads"] >= 1 and facts["cores"] >= 1
    assert facts["backend"] == tinyfin.backend_name() and facts["backends"]["cpu"] is None


def test_a_missing_backend_is_shown_with_its_reason(capsys, monkeypatch):
    monkeypatch.setattr(tinyfin, "backend_list", lambda: {"cpu": None, "vulkan": "no driver found"})
    main.main(["info"])
    assert "missing: no driver found" in capsys.readouterr().out


def test_devices_are_named(capsys, vulkan):
    main.main(["info"])
    text = capsys.readouterr().out
    assert "vulkan:0  " in text and "(" in text.split("vulkan:0  ")[1]
    main.main(["info", "--json"])
    assert json.loads(capsys.readouterr().out)["devices"]["vulkan"]
