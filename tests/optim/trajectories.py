"""Steps of one optimizer here and in PyTorch, from the same parameters and gradients."""

import numpy as np

SHAPES = ((3, 4), (5,), (2, 1, 3), ())


def gradients(steps, seed=0):
    """For each step a list of arrays, some of them missing."""
    rng = np.random.default_rng(seed)
    drawn = []
    for i in range(steps):
        grads = [rng.standard_normal(s) * 10.0 ** rng.integers(-3, 2) for s in SHAPES]
        grads[1] = None if i % 5 == 1 else grads[1]
        drawn.append(grads)
    return drawn


def make(m, dtype="float64", seed=1):
    """Parameters of module `m`, tinyfin or torch."""
    rng = np.random.default_rng(seed)
    return [
        m.nn.Parameter(m.tensor(rng.standard_normal(s).tolist(), dtype=getattr(m, dtype)))
        for s in SHAPES
    ]


def steps(m, params, opt, grads, dtype="float64"):
    """The parameters after each step."""
    seen = []
    for step in grads:
        for p, g in zip(params, step):
            p.grad = None if g is None else m.tensor(g.tolist(), dtype=getattr(m, dtype))
        opt.step()
        seen.append([np.array(p.detach().numpy()) for p in params])
    return seen


def run(m, name, options, count=20, dtype="float64"):
    """The parameters after each of `count` steps."""
    params = make(m, dtype)
    opt = getattr(m.optim, name)(params, **options)
    return steps(m, params, opt, gradients(count), dtype)


def largest(a, b):
    """The largest relative difference of two runs."""
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        for p, q in zip(x, y, strict=True):
            worst = max(worst, float(np.max(np.abs(p - q) / (1e-3 + np.abs(q)))))
    return worst


def check(tf, torch, name, options, tolerance=1e-10):
    """Asserts that both go the same way, and go on so after the state went through a dictionary."""
    a, b = run(tf, name, options), run(torch, name, options)
    assert largest(a, b) < tolerance
    a, b = run(tf, name, options, dtype="float32"), run(torch, name, options, dtype="float32")
    assert largest(a, b) < 2e-4
    grads = gradients(20)
    params = make(tf)
    opt = getattr(tf.optim, name)(params, **options)
    first = steps(tf, params, opt, grads[:9])
    again = [tf.nn.Parameter(p.detach().clone()) for p in params]
    other = getattr(tf.optim, name)(again, **options)
    other.load_state_dict(opt.state_dict())
    assert (
        largest(first + steps(tf, again, other, grads[9:]), run(torch, name, options)) < tolerance
    )
    theirs = make(torch)
    ref = getattr(torch.optim, name)(theirs, **options)
    steps(torch, theirs, ref, grads[:9])
    assert layout(opt.state_dict()) == layout(ref.state_dict())


def layout(state):
    """Names and shapes in a state dictionary."""
    kept = {k: {n: tuple(v.shape) for n, v in entry.items()} for k, entry in state["state"].items()}
    groups = [{k: v for k, v in g.items() if k != "params"} for g in state["param_groups"]]
    return kept, groups, [g["params"] for g in state["param_groups"]]
