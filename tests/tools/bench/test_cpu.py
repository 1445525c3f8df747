"""tools/bench/cpu.py: results are compared before they are timed, what fails is counted as failed."""

import json

import lazy
import programs
import pytest

import tinyfin as tf

cpu = programs.bench("cpu")
cases = programs.bench("cases")


@pytest.mark.parametrize("name", [n for n, (group, _) in cases.CASES.items() if group == "train"])
def test_steps_learn(name):
    step = cases.CASES[name][1](tf)
    first = step().item()
    assert step().item() != first and min(step().item() for _ in range(3)) < first


def result(*values, shape=None):
    """Samples as a process gives them: of one run with one tensor."""
    return [[{"shape": shape or [len(values)], "values": list(values)}]]


@pytest.mark.parametrize(
    "ours, why",
    [
        (result(1.0, 2.0), None),
        (result(1.001, 2.0), None),
        (result(1.1, 2.0), "results differ by 5.0e-02 of the largest"),
        (result(float("nan"), 2.0), "results differ by nan of the largest"),
        (result(1.0, 2.0, shape=[1, 2]), "shape [1, 2], PyTorch's is [2]"),
    ],
)
def test_results_that_differ(ours, why):
    assert cpu.difference(ours, result(1.0, 2.0)) == why


def test_samples_are_spread_over_the_whole_result():
    (one,) = cpu.sample(tf.arange(10 * cpu.SAMPLED))
    assert one["shape"] == [10 * cpu.SAMPLED] and one["values"][:3] == [0, 10, 20]
    assert len(one["values"]) == cpu.SAMPLED
    assert [s["values"] for s in cpu.sample((tf.ones(2), tf.zeros(())))] == [[1, 1], [0]]


def test_errors_of_a_case_are_told_and_the_process_goes_on():
    peer = cpu.Peer(cpu.sys.executable, "tinyfin", 1)
    try:
        with pytest.raises(cpu.Failure, match="tinyfin: KeyError: 'no such case'"):
            peer.ask(prepare="no such case")
        samples = peer.ask(prepare="matmul 8")
        assert samples[0][0]["shape"] == [8, 8] and 1e-8 < peer.ask(time=0.001) < 0.1
        peer.process.kill()
        with pytest.raises(cpu.Failure, match="tinyfin ended with -9"):
            peer.ask(time=0.001)
        assert peer.ask(prepare="matmul 8") == samples
    finally:
        peer.stop()


def test_command_line(tmp_path):
    out = tmp_path / "figures.json"
    few = ["--only", "x[3:17,transpose,MLP", "--threads", "2", "--rounds", 1, "--budget", 0.001]
    done = programs.run("cpu", *few, "--json", out, folder="tools/bench")
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    rows = found["threads"]["2"]
    assert {"x[3:17, 5]", "transpose", "step: MLP, batch 128"} <= rows.keys()
    assert not [name for name, row in rows.items() if "failed" in row]
    (memory,) = found["memory"].values()
    assert all(1e6 < m["growth"] < m["whole"] for m in memory)
    assert ("| train | " in done.stdout) == lazy.INSTALLED == (len(memory) == 2)
