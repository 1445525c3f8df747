"""Steps of one optimizer here, by its rule in NumPy, and in PyTorch, from the same parameters and
gradients.
"""

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


def sgd(p, g, s, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    """One step of SGD in NumPy; `s` is the state of the parameter."""
    g = (-g if maximize else g) + weight_decay * p
    if momentum:
        s["b"] = momentum * s["b"] + (1 - dampening) * g if "b" in s else g
        g = g + momentum * s["b"] if nesterov else s["b"]
    return p - lr * g


def adam(
    p, g, s, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, maximize=False
):
    """One step of Adam in NumPy."""
    return _adam(p, (-g if maximize else g) + weight_decay * p, s, lr, betas, eps, amsgrad)


def adamw(
    p, g, s, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, amsgrad=False, maximize=False
):
    """One step of AdamW in NumPy."""
    p = p * (1 - lr * weight_decay)
    return _adam(p, -g if maximize else g, s, lr, betas, eps, amsgrad)


def _adam(p, g, s, lr, betas, eps, amsgrad):
    t = s["t"] = s.get("t", 0) + 1
    s["m"] = betas[0] * s.get("m", 0.0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0.0) + (1 - betas[1]) * g * g
    v = s["top"] = np.maximum(s.get("top", 0.0), s["v"]) if amsgrad else s["v"]
    return p - lr * (s["m"] / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


def rmsprop(
    p,
    g,
    s,
    lr=1e-2,
    alpha=0.99,
    eps=1e-8,
    weight_decay=0,
    momentum=0,
    centered=False,
    maximize=False,
):
    """One step of RMSprop in NumPy."""
    g = (-g if maximize else g) + weight_decay * p
    s["v"] = alpha * s.get("v", 0.0) + (1 - alpha) * g * g
    s["m"] = alpha * s.get("m", 0.0) + (1 - alpha) * g
    step = g / (np.sqrt(s["v"] - s["m"] ** 2 if centered else s["v"]) + eps)
    s["b"] = momentum * s.get("b", 0.0) + step
    return p - lr * s["b"]


RULES = {"SGD": sgd, "Adam": adam, "AdamW": adamw, "RMSprop": rmsprop}


def formula(name, options, start, grads):
    """The parameters after each step, by the rule of the optimizer."""
    params, states, seen = [np.array(p) for p in start], [{} for _ in start], []
    for step in grads:
        for i, g in enumerate(step):
            if g is not None:
                params[i] = RULES[name](params[i], g, states[i], **options)
        seen.append([p.copy() for p in params])
    return seen


def check_rule(tf, name, options, tolerance=1e-10):
    """Asserts that steps are those of the rule, and go on so after the state went through a
    dictionary.
    """
    grads = gradients(20)
    params = make(tf)
    want = formula(name, options, [p.detach().numpy() for p in params], grads)
    opt = getattr(tf.optim, name)(params, **options)
    first = steps(tf, params, opt, grads[:9])
    again = [tf.nn.Parameter(p.detach().clone()) for p in params]
    other = getattr(tf.optim, name)(again, **options)
    other.load_state_dict(opt.state_dict())
    assert largest(first + steps(tf, again, other, grads[9:]), want) < tolerance
    assert largest(run(tf, name, options, dtype="float32"), want) < 2e-4


def check(tf, torch, name, options, tolerance=1e-10):
    """Asserts that both go the same way, and that their states are laid out the same way."""
    a, b = run(tf, name, options), run(torch, name, options)
    assert largest(a, b) < tolerance
    a, b = run(tf, name, options, dtype="float32"), run(torch, name, options, dtype="float32")
    assert largest(a, b) < 2e-4
    states = []
    for m in (tf, torch):
        params = make(m)
        opt = getattr(m.optim, name)(params, **options)
        steps(m, params, opt, gradients(9))
        states.append(layout(opt.state_dict()))
    assert states[0] == states[1]


def layout(state):
    """Names and shapes in a state dictionary."""
    kept = {k: {n: tuple(v.shape) for n, v in entry.items()} for k, entry in state["state"].items()}
    groups = [{k: v for k, v in g.items() if k != "params"} for g in state["param_groups"]]
    return kept, groups, [g["params"] for g in state["param_groups"]]
