"""Blocks of device memory, with slabs that are only numbers."""

import gc

import pytest

from tinyfin.backends.gpu.slabs import Pool, Slab, to_device, to_host


class Memory:
    """A driver with so many bytes."""

    def __init__(self, room=1 << 30):
        self.room, self.next, self.made, self.freed = room, 1 << 20, [], []

    def new(self, nbytes):
        if nbytes > self.room:
            raise MemoryError
        self.room -= nbytes
        self.made.append(nbytes)
        self.next += 1 << 32
        return Slab(len(self.made), self.next, 0, nbytes)

    def free(self, slab):
        self.room += slab.nbytes
        self.freed.append(slab.nbytes)

    def pool(self, largest=1 << 30):
        return Pool(self.new, self.free, "test", largest)


def test_blocks_do_not_overlap():
    pool = Memory().pool()
    blocks = [pool.allocate(n) for n in (0, 1, 511, 512, 513, 100_000, 1 << 20)]
    spans = sorted((b.block, b.block + max(b.nbytes, 1)) for b in blocks)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:]))
    assert all(b.block % 512 == 0 and b.room >= b.nbytes for b in blocks)


def test_a_freed_block_is_given_out_again():
    memory = Memory()
    pool = memory.pool()
    block = pool.allocate(100_000)
    where = block.block
    del block
    assert pool.allocate(100_000).block == where and pool.reused == 1
    assert memory.made == [64 << 20]


def test_small_blocks_take_turns():
    """No result lies where one of the three before it lay; then memory does not grow."""
    pool = Memory().pool()
    seen = [pool.allocate(1000).block for _ in range(40)]
    assert all(len(set(seen[k : k + 4])) == 4 for k in range(36)) and len(set(seen)) == 4
    kept = [pool.allocate(1000) for _ in range(9)]
    assert len({b.block for b in kept}) == 9
    kept.clear()
    order = [pool.allocate(1000).block for _ in range(24)]
    assert len(set(order)) == 12 and order[:12] == order[12:] and pool.stats()["live"] == 0


def test_the_last_small_block_is_given_where_nothing_is_left():
    pool = Memory().pool(largest=2048)
    kept = [pool.allocate(512) for _ in range(4)]
    pool.limit = 2048
    where = kept.pop().block
    assert pool.allocate(512).block == where and pool.reused == 1


def test_large_blocks_have_slabs_of_their_own():
    memory = Memory()
    pool = memory.pool()
    kept = [pool.allocate(100 << 20), pool.allocate(10)]
    assert (
        memory.made == [100 << 20, 64 << 20]
        and pool.stats()["live"] + pool.stats()["cached"] == 164 << 20
    )
    kept.clear()
    gc.collect()
    assert pool.release() == 2 and pool.stats()["cached"] == 0 and len(memory.freed) == 2


def test_what_is_unused_goes_back_when_the_device_is_full():
    memory = Memory(140 << 20)
    pool = memory.pool()
    small = pool.allocate(100)
    large = pool.allocate(70 << 20)
    del large
    kept = pool.allocate(76 << 20)
    assert memory.freed == [70 << 20] and memory.made == [64 << 20, 70 << 20, 76 << 20]
    with pytest.raises(
        MemoryError, match=r"no more; living tensors hold \d+ bytes, the pool keeps"
    ):
        pool.allocate(100 << 20)
    assert small.nbytes == 100 and kept.nbytes == 76 << 20


def test_a_collection_while_slabs_are_given_back():
    """What it frees belongs to slabs that are kept, or go: none is lost."""
    old = gc.get_threshold()
    for threshold in range(40):  # in one of these rounds it comes at each allocation on the way
        memory = Memory()
        pool = memory.pool()
        first, second = pool.allocate(40 << 20), pool.allocate(40 << 20)
        gc.collect()
        gc.disable()
        try:
            lists = [
                [] for _ in range(100)
            ]  # more than Python keeps for reuse, which would not count
            ring = [second]
            ring.append(ring)
            del first, second
            gc.set_threshold(90 + threshold)
            del ring
            gc.enable()
            pool.release()
        finally:
            gc.enable()
            gc.set_threshold(*old)
        lists.clear()
        gc.collect()
        pool.release()
        assert len(memory.freed) == len(memory.made) and pool.stats()["cached"] == 0


def test_limits():
    pool = Memory().pool(1 << 20)
    with pytest.raises(MemoryError, match="gives at most 1048576 in one piece"):
        pool.allocate(2 << 20)
    pool.limit = 4096
    kept = pool.allocate(4000)
    with pytest.raises(MemoryError, match="4096 of the limit 4096 are in use"):
        pool.allocate(1)
    assert kept.room == 4096 and pool.stats()["peak"] == 4096


def test_mapped_memory():
    target = bytearray(8)
    import numpy as np

    address = np.frombuffer(target, np.uint8).__array_interface__["data"][0]
    to_device(address, b"abcdefgh")
    out = bytearray(3)
    to_host(out, address + 2)
    assert target == b"abcdefgh" and out == b"cde"
    to_device(address, b"")


def test_an_empty_slab_is_cut_anew():
    memory = Memory()
    pool = memory.pool()
    block = pool.allocate(70 << 20)
    del block
    kept = [pool.allocate(20 << 20) for _ in range(3)]
    assert memory.made == [70 << 20] and len({b.block for b in kept}) == 3


def test_growing_temporaries_do_not_fill_a_device():
    """Small blocks stay, large ones of ever other sizes come and go."""
    memory = Memory(room=1 << 30)
    pool = memory.pool()
    kept = []
    for k in range(600):
        kept.append(pool.allocate(1 << 20))
        temporary = pool.allocate((40 << 20) + 512 * k)
        del temporary
    assert pool.stats()["live"] == 600 << 20 and pool.reused > 500
