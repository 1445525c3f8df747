"""What all optimizers share: groups, state, hooks, closures, errors."""

import copy
import pickle
import warnings

import pytest
from nn import examples

import tinyfin as tf


def parameter(*shape):
    return tf.nn.Parameter(tf.ones(shape or (2,)))


def stepped(opt):
    for group in opt.param_groups:
        for p in group["params"]:
            p.grad = tf.ones_like(p.detach())
    opt.step()
    return opt


def test_groups_take_defaults():
    a, b = parameter(), parameter()
    opt = tf.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in opt.param_groups] == [0.1, 0.5]
    assert [g["momentum"] for g in opt.param_groups] == [0.9, 0.9]
    assert opt.param_groups[1]["params"][0] is b


def test_group_dictionaries_are_not_changed():
    group = {"params": [parameter()]}
    tf.optim.SGD([group], lr=0.1)
    assert list(group) == ["params"]


def test_named_parameters_keep_their_names():
    net = tf.nn.Module()
    net.a, net.b = parameter(), parameter()
    opt = tf.optim.SGD(net.named_parameters(), lr=0.1)
    assert opt.param_groups[0]["param_names"] == ["a", "b"]
    assert opt.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="names"):
        opt.add_param_group({"params": [parameter()]})
    with pytest.raises(ValueError, match="names"):
        tf.optim.SGD([("a", parameter()), parameter()], lr=0.1)


def test_zero_grad():
    p, q = parameter(), parameter()
    opt = tf.optim.SGD([p, q], lr=0.1)
    p.grad = tf.ones(2)
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0, 0.0] and q.grad is None
    opt.zero_grad()
    assert p.grad is None


def test_parameters_without_gradient_stay():
    p, q = parameter(), parameter()
    opt = tf.optim.Adam([p, q], lr=0.1)
    p.grad = tf.ones(2)
    opt.step()
    assert q.tolist() == [1.0, 1.0] and q not in opt.state and p in opt.state


def test_closure_runs_with_recording():
    p = parameter(1)
    opt = tf.optim.SGD([p], lr=0.25)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with tf.no_grad():
        loss = opt.step(closure)
    assert loss.item() == 1.0 and p.tolist() == [0.5]


def test_step_leaves_recording_on():
    stepped(tf.optim.SGD([parameter()], lr=0.1))
    assert (parameter() * 2).requires_grad


def test_step_is_not_recorded():
    p = parameter()
    stepped(tf.optim.SGD([p], lr=0.1, momentum=0.9))
    assert p.is_leaf and p.requires_grad and p.grad_fn is None


def test_rates_set_later_are_checked():
    p = parameter()
    opt = tf.optim.SGD([p], lr=0.1)
    opt.param_groups[0]["lr"] = float("nan")
    with pytest.raises(ValueError, match="lr is nan"):
        stepped(opt)
    assert p.tolist() == [1.0, 1.0]


def test_rate_may_be_a_tensor():
    p = parameter()
    stepped(tf.optim.SGD([p], lr=tf.tensor(0.5)))
    assert p.tolist() == [0.5, 0.5]


def test_state_dict_numbers_parameters():
    a, b, c = parameter(), parameter(3), parameter(1)
    opt = tf.optim.Adam([{"params": [a, b]}, {"params": [c], "lr": 0.5}], lr=0.1)
    state = stepped(opt).state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0, 1], [2]]
    assert set(state["state"]) == {0, 1, 2}
    entry = state["state"][1]
    assert set(entry) == {"step", "exp_avg", "exp_avg_sq"}
    assert entry["step"].item() == 1.0 and tuple(entry["exp_avg"].shape) == (3,)


def test_loaded_state_is_a_copy():
    opt = stepped(tf.optim.SGD([parameter()], lr=0.1, momentum=0.9))
    other = tf.optim.SGD([parameter()], lr=9.0, momentum=0.1)
    other.load_state_dict(opt.state_dict())
    assert other.param_groups[0]["lr"] == 0.1 and other.param_groups[0]["momentum"] == 0.9
    before = opt.state_dict()["state"][0]["momentum_buffer"].tolist()
    stepped(other)
    assert opt.state_dict()["state"][0]["momentum_buffer"].tolist() == before


def test_loaded_state_takes_the_type_of_its_parameter():
    opt = stepped(tf.optim.Adam([parameter()], lr=0.1))
    p = tf.nn.Parameter(tf.ones(2, dtype=tf.float64))
    other = tf.optim.Adam([p], lr=0.1)
    other.load_state_dict(opt.state_dict())
    assert other.state[p]["exp_avg"].dtype == tf.float64


def test_loading_fills_missing_options():
    opt = tf.optim.SGD([parameter()], lr=0.1, momentum=0.5)
    state = opt.state_dict()
    del state["param_groups"][0]["nesterov"]
    opt.load_state_dict(state)
    assert opt.param_groups[0]["nesterov"] is False


def test_copies_and_pickles_are_apart():
    p = parameter()
    opt = stepped(tf.optim.SGD([p], lr=0.1, momentum=0.9))
    for twin in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
        q = twin.param_groups[0]["params"][0]
        assert q is not p and isinstance(q, tf.nn.Parameter) and list(twin.state) == [q]
        before = p.tolist()
        stepped(twin)
        assert p.tolist() == before and q.tolist() != before


def test_step_hooks():
    p = parameter()
    opt, seen = tf.optim.SGD([p], lr=0.1), []
    pre = opt.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", o is opt, args)))
    post = opt.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", p.tolist())))
    stepped(opt)
    assert seen[0] == ("pre", True, ()) and seen[1][1] == pytest.approx([0.9, 0.9])
    pre.remove()
    post.remove()
    stepped(opt)
    assert len(seen) == 2
    stepped(opt)
    assert "step" not in vars(opt)


def test_step_pre_hook_replaces_arguments():
    opt = tf.optim.SGD([parameter()], lr=0.1)
    opt.register_step_pre_hook(lambda o, args, kwargs: ((), {"closure": lambda: "changed"}))
    assert opt.step() == "changed"
    opt = tf.optim.SGD([parameter()], lr=0.1)
    opt.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="expected None or a tuple"):
        opt.step()


def test_state_dict_hooks():
    opt, seen = tf.optim.SGD([parameter()], lr=0.1), []
    opt.register_state_dict_pre_hook(lambda o: seen.append("save"))
    opt.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    opt.register_load_state_dict_pre_hook(lambda o, state: seen.append("load"))
    opt.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    state = opt.state_dict()
    opt.load_state_dict(state)
    assert state["note"] == 1 and seen == ["save", "load", "loaded"]


def test_hooks_may_be_prepended():
    opt, seen = tf.optim.SGD([parameter()], lr=0.1), []
    opt.register_state_dict_pre_hook(lambda o: seen.append(1))
    opt.register_state_dict_pre_hook(lambda o: seen.append(0), prepend=True)
    opt.state_dict()
    assert seen == [0, 1]


def test_own_optimizer():
    class Descent(tf.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with tf.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        self.state[p]["count"] = self.state[p].get("count", 0) + 1
                        p.sub_(p.grad * group["lr"])

    p = parameter()
    opt = stepped(Descent([p], 0.5))
    assert p.tolist() == [0.5, 0.5] and opt.state_dict()["state"][0] == {"count": 1}
    other = Descent([parameter()], 0.1)
    other.load_state_dict(opt.state_dict())
    assert other.param_groups[0]["lr"] == 0.5


def test_repr_lists_options():
    text = repr(tf.optim.SGD([parameter()], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n") and "    lr: 0.5\n" in text


def test_the_same_parameter_twice():
    p = parameter()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tf.optim.SGD([p, p], lr=0.1)
    assert len(seen) == 1 and "more than once" in str(seen[0].message)
    with pytest.raises(ValueError, match="more than one parameter group"):
        tf.optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)


@pytest.mark.parametrize(
    "params, error, text",
    [
        (lambda: parameter(), TypeError, "single tensor"),
        (lambda: [], ValueError, "empty list"),
        (lambda: [3.0], TypeError, "parameter 0 is a float"),
        (lambda: [parameter() * 2], ValueError, "not a leaf"),
        (lambda: [{"params": {parameter()}}], TypeError, "params is a set"),
        (lambda: [{"params": [parameter()]}, 3], TypeError, "group is a int"),
    ],
)
def test_bad_parameters(params, error, text):
    with pytest.raises(error, match=text):
        tf.optim.SGD(params(), lr=0.1)


def test_options_without_default_are_asked_for():
    class Needy(tf.optim.Optimizer):
        def __init__(self, params):
            from tinyfin.optim.optimizer import REQUIRED

            super().__init__(params, {"lr": REQUIRED})

    with pytest.raises(ValueError, match="no value for 'lr'"):
        Needy([parameter()])
    with pytest.raises(NotImplementedError, match="step"):
        Needy([{"params": [parameter()], "lr": 1.0}]).step()


def change(state, key, value):
    state["state"][1][key] = value


@pytest.mark.parametrize(
    "kind, options, damage, text",
    [
        ("SGD", {"momentum": 0.9}, lambda s: change(s, "momentum_buffer", "bad"), "'momentum_buf"),
        ("SGD", {"momentum": 0.9}, lambda s: change(s, "momentum_buffer", tf.ones(3)), r"\(3,\)"),
        ("SGD", {}, lambda s: s["param_groups"][0].update(lr="high"), "lr is a str"),
        ("SGD", {}, lambda s: s["param_groups"][0].update(lr=float("nan")), "lr is nan"),
        ("SGD", {}, lambda s: s["param_groups"][0].update(momentum=-1), "momentum is -1"),
        ("Adam", {}, lambda s: change(s, "step", "one"), "'step' is a str"),
        ("Adam", {}, lambda s: change(s, "step", float("nan")), "'step' is nan"),
        ("Adam", {}, lambda s: change(s, "step", tf.ones(2)), "'step' is a Tensor"),
        ("Adam", {}, lambda s: change(s, "exp_avg", None), "'exp_avg' is a NoneType"),
        ("Adam", {}, lambda s: s["state"][1].pop("exp_avg_sq"), "no 'exp_avg_sq'"),
        ("Adam", {"amsgrad": True}, lambda s: s["state"][1].pop("max_exp_avg_sq"), "no 'max_exp"),
        ("Adam", {}, lambda s: s["param_groups"][0].update(betas=0.9), "betas is 0.9"),
        ("AdamW", {}, lambda s: s["state"].update({1: 5}), "is a int, expected a dict"),
        ("RMSprop", {"centered": True}, lambda s: s["state"][1].pop("grad_avg"), "no 'grad_avg'"),
        ("RMSprop", {"momentum": 0.5}, lambda s: s["state"][1].pop("momentum_buffer"), "no 'mom"),
        ("RMSprop", {}, lambda s: change(s, "square_avg", [1.0]), "'square_avg' is a list"),
        ("SGD", {}, lambda s: s.pop("state"), "no 'state'"),
        ("SGD", {}, lambda s: s.update(param_groups=3), "param_groups is a int"),
        ("SGD", {}, lambda s: s["param_groups"][0].pop("params"), "group 0 has no 'params'"),
    ],
)
def test_damaged_state_changes_nothing(kind, options, damage, text):
    def make(lr):
        params = [parameter(), parameter()]
        opt = getattr(tf.optim, kind)(params, lr=lr, **options)
        for p in params:
            p.grad = tf.ones(2)
        opt.step()
        return opt

    saved, opt = make(0.5).state_dict(), make(0.25)
    damage(saved)
    before = repr(opt.state_dict())
    with pytest.raises((ValueError, TypeError), match=text):
        opt.load_state_dict(saved)
    assert repr(opt.state_dict()) == before
    opt.step()


def test_a_rate_just_below_zero_may_be_loaded():
    """A schedule's rounding may have taken it there."""
    opt = tf.optim.SGD([parameter()], lr=0.1)
    opt.param_groups[0]["lr"] = -1e-18
    other = tf.optim.SGD([parameter()], lr=0.1)
    other.load_state_dict(opt.state_dict())
    assert other.param_groups[0]["lr"] == -1e-18


def test_options_that_are_no_numbers():
    for options, text in (({"lr": "0.1"}, "lr is a str"), ({"lr": None}, "lr is a NoneType")):
        with pytest.raises(TypeError, match=f"SGD: {text}, expected a number"):
            tf.optim.SGD([parameter()], **options)


def test_loading_what_does_not_fit():
    opt = tf.optim.SGD([parameter()], lr=0.1)
    two = tf.optim.SGD([{"params": [parameter()]}, {"params": [parameter()]}], lr=0.1)
    with pytest.raises(ValueError, match="2 parameter groups were given"):
        opt.load_state_dict(two.state_dict())
    wide = tf.optim.SGD([parameter(), parameter()], lr=0.1)
    with pytest.raises(ValueError, match="group 0 has 2 parameters"):
        opt.load_state_dict(wide.state_dict())
    adam = tf.optim.Adam([parameter()], lr=0.1)
    adam.param_groups[0]["params"][0].sum().backward()
    adam.step()
    with pytest.raises(ValueError, match="holds 'exp_avg', which SGD does not keep"):
        opt.load_state_dict(adam.state_dict())
    assert not opt.state and opt.param_groups[0]["lr"] == 0.1


def test_examples():
    examples.run("tinyfin.optim.optimizer")


def test_parameters_that_are_none():
    with pytest.raises(TypeError, match="SGD: params is 3, expected a list of tensors"):
        tf.optim.SGD(3, lr=0.1)
