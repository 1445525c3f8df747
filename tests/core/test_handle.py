"""RemovableHandle: hooks come and go."""

import copy
import pickle

from tinyfin.core.handle import RemovableHandle


class Hook:
    def __init__(self, name):
        self.name = name


def test_order():
    hooks = []
    for name, first in (("b", False), ("c", False), ("a", True)):
        RemovableHandle(hooks, Hook(name), first)
    assert [h.name for h in hooks] == ["a", "b", "c"]


def test_removal_is_by_identity_and_once():
    hooks = []
    hook = Hook("a")
    one = RemovableHandle(hooks, hook)
    other = RemovableHandle(hooks, Hook("a"))
    one.remove()
    assert len(hooks) == 1 and hooks[0] is not hook
    hooks.append(hook)
    one.remove()
    assert hook in hooks
    other.remove()
    assert hooks == [hook]


def test_removal_of_what_is_gone():
    hooks = []
    handle = RemovableHandle(hooks, Hook("a"))
    hooks.clear()
    handle.remove()
    assert hooks == []


def test_with_statement():
    hooks = []
    with RemovableHandle(hooks, Hook("a")) as handle:
        assert len(hooks) == 1 and isinstance(handle, RemovableHandle)
    assert hooks == []


def test_copies_belong_to_the_copied_list():
    hooks = []
    handle = RemovableHandle(hooks, Hook("a"))
    for twin_of in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        twins, twin = twin_of((hooks, handle))
        twin.remove()
        assert twins == [] and len(hooks) == 1
