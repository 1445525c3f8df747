"""What the GPU backends share: opening."""

from backends.isolated import run


def test_threads_may_open_a_device(gpu):
    """One opens it, the others wait until it is checked; then all work on it."""
    code = f"""
import threading
import tinyfin as tf
from tinyfin.backends.base import REGISTRY
bad = []
def work(k):
    try:
        for n in (1, 700, 300_000):
            x = tf.arange(n).float()
            if ((x.to("{gpu}") + k) * 2).tolist() != ((x + k) * 2).tolist():
                bad.append((k, n))
    except BaseException as error:
        bad.append(error)
threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
for t in threads: t.start()
for t in threads: t.join()
print(bad, list(REGISTRY["{gpu}"].opened_devices))
"""
    assert run(code)[0] == ["[] [0]"]
