"""How benches take the time of one run."""

import time


def seconds(run, wait, budget, most=5000):
    """Seconds of one run, waiting for the device once at the end of about `budget` seconds and at most `most` runs."""
    start = time.perf_counter()
    run()
    wait()
    once = max(time.perf_counter() - start, 1e-7)
    if once < budget / 100:  # much of that may be the waiting
        start = time.perf_counter()
        for _ in range(10):
            run()
        wait()
        once = max((time.perf_counter() - start) / 10, 1e-7)
    n = max(1, min(most, int(budget / once)))
    start = time.perf_counter()
    for _ in range(n):
        run()
    wait()
    return (time.perf_counter() - start) / n
