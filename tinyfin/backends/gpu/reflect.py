"""What a SPIR-V module asks of a device, read from its words: no tool needed.

Imports nothing of the package.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MAGIC = 0x07230203
(
    EXECUTION_MODE, CAPABILITY, TYPE_BOOL, TYPE_INT, TYPE_FLOAT, TYPE_VECTOR, TYPE_MATRIX, TYPE_ARRAY,
    TYPE_STRUCT, TYPE_POINTER, CONSTANT, SPEC_CONSTANT, TRUE, FALSE, VARIABLE, DECORATE,
    MEMBER_DECORATE, EXECUTION_MODE_ID, COMPOSITE, SPEC_COMPOSITE, SPEC_OPERATION, FUNCTION,
) = (16, 17, 20, 21, 22, 23, 24, 28, 30, 32, 43, 50, 41, 42, 59, 71, 72, 331, 44, 51, 52, 54)  # fmt: skip
"""Instructions that are read."""
LOCAL_SIZE, LOCAL_SIZE_ID = 17, 38
WORKGROUP, PUSH_CONSTANT = 4, 9
SUMS = {
    128: lambda a, b: a + b,
    130: lambda a, b: a - b,
    132: lambda a, b: a * b,
    134: lambda a, b: a // b,
    137: lambda a, b: a % b,
    170: lambda a, b: int(a == b),
    171: lambda a, b: int(a != b),
    172: lambda a, b: int(a > b),
    174: lambda a, b: int(a >= b),
    176: lambda a, b: int(a < b),
    178: lambda a, b: int(a <= b),
    166: lambda a, b: int(bool(a) or bool(b)),
    167: lambda a, b: int(bool(a) and bool(b)),
    194: lambda a, b: a >> b,
    196: lambda a, b: a << b,
    197: lambda a, b: a | b,
    199: lambda a, b: a & b,
}
"""What constants are computed with: integers without sign, truth values."""
SELECT, NOT = 169, 168
SPEC_ID, BUILT_IN, OFFSET, WORKGROUP_SIZE = 1, 11, 35, 25
CAPABILITIES = {
    0: "Matrix",
    1: "Shader",
    9: "Float16",
    10: "Float64",
    11: "Int64",
    12: "Int64Atomics",
    22: "Int16",
    39: "Int8",
    61: "GroupNonUniform",
    62: "GroupNonUniformVote",
    63: "GroupNonUniformArithmetic",
    64: "GroupNonUniformBallot",
    65: "GroupNonUniformShuffle",
    4433: "StorageBuffer16BitAccess",
    4434: "UniformAndStorageBuffer16BitAccess",
    4448: "StorageBuffer8BitAccess",
    4449: "UniformAndStorageBuffer8BitAccess",
    5116: "BFloat16TypeKHR",
    5118: "BFloat16CooperativeMatrixKHR",
    5345: "VulkanMemoryModel",
    5347: "PhysicalStorageBufferAddresses",
    6022: "CooperativeMatrixKHR",
}
"""Number of a capability -> its name in the specification; others are named by their number."""


class Module:
    """One module. Sizes are in bytes.

    Args:
        constants: values of the specialization constants; those not given are what the module says.

    Attributes:
        version: of SPIR-V, such as (1, 6).
        capabilities: names of what the device must have.
        group: invocations of a work group along x, y and z.
        push_bytes: of the block of parameters; 0 without one.
        shared_bytes: of memory that a work group shares, if `shares` says that there is any.
        spec_ids: numbers of the specialization constants.
    """

    def __init__(self, code: bytes, constants: Sequence[int] = ()) -> None:
        if len(code) < 20 or len(code) % 4 or code[:4] != MAGIC.to_bytes(4, "little"):
            raise ValueError("this is no SPIR-V")
        self.words = struct.unpack(f"<{len(code) // 4}I", code)
        self.version = (self.words[1] >> 16 & 0xFF, self.words[1] >> 8 & 0xFF)
        self.capabilities: list[str] = []
        self.spec_ids: dict[int, int] = {}
        self.types: dict[int, tuple[int, ...]] = {}
        self.values: dict[int, int] = {}
        self.offsets: dict[tuple[int, int], int] = {}
        self.variables: list[tuple[int, int]] = []
        self.group: tuple[int, ...] = (1, 1, 1)
        group_ids: tuple[int, ...] = ()
        composites: dict[int, tuple[int, ...]] = {}
        sized_by = 0
        for operation, at in self.instructions():
            if operation == CAPABILITY:
                self.capabilities.append(CAPABILITIES.get(at[0], f"capability {at[0]}"))
            elif operation == EXECUTION_MODE and at[1] == LOCAL_SIZE:
                self.group = at[2:5]
            elif operation == EXECUTION_MODE_ID and at[1] == LOCAL_SIZE_ID:
                group_ids = at[2:5]
            elif operation == DECORATE and at[1] == SPEC_ID:
                self.spec_ids[at[0]] = at[2]
            elif operation == DECORATE and at[1:3] == (BUILT_IN, WORKGROUP_SIZE):
                sized_by = at[0]
            elif operation == MEMBER_DECORATE and at[2] == OFFSET:
                self.offsets[at[0], at[1]] = at[3]
            elif TYPE_BOOL <= operation <= TYPE_POINTER:
                self.types[at[0]] = (operation, *at[1:])
            elif operation in (CONSTANT, SPEC_CONSTANT):
                place = self.spec_ids.get(at[1], len(constants))
                self.values[at[1]] = constants[place] if place < len(constants) else at[2]
            elif operation in (TRUE, FALSE):
                self.values[at[1]] = int(operation == TRUE)
            elif operation == SPEC_OPERATION:
                self.compute(at[1], at[2], [self.values.get(k) for k in at[3:]])
            elif operation in (COMPOSITE, SPEC_COMPOSITE):
                composites[at[1]] = at[2:]
            elif operation == VARIABLE:
                self.variables.append((at[0], at[2]))
        group_ids = composites.get(sized_by, group_ids)
        if group_ids and all(i in self.values for i in group_ids):
            self.group = tuple(self.values[i] for i in group_ids)
        self.shares = any(s == WORKGROUP for _, s in self.variables)
        self.shared_bytes = self.total(WORKGROUP)
        self.push_bytes = self.total(PUSH_CONSTANT)

    def instructions(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(operation, its operands) in order, as far as the first function: the rest declares nothing."""
        at = 5
        while at < len(self.words) and self.words[at] & 0xFFFF != FUNCTION:
            length = self.words[at] >> 16
            if not length or at + length > len(self.words):
                raise ValueError(f"instruction at word {at} has {length} words")
            yield self.words[at] & 0xFFFF, self.words[at + 1 : at + length]
            at += length

    def compute(self, number: int, operation: int, given: Sequence[int | None]) -> None:
        """The value of a constant that others make; none where it is not known."""
        values = [v for v in given if v is not None]
        if len(values) < len(given):
            return
        if operation == SELECT:
            self.values[number] = values[1] if values[0] else values[2]
        elif operation == NOT:
            self.values[number] = int(not values[0])
        elif operation in SUMS and not (operation in (134, 137) and not values[1]):
            self.values[number] = SUMS[operation](*values) & 0xFFFFFFFF

    def total(self, storage: int) -> int:
        """Bytes of all variables of a storage class."""
        return sum(self.size(self.types[t][2]) for t, s in self.variables if s == storage)

    def size(self, number: int) -> int:
        """Bytes of a type: a structure ends where its last member ends."""
        kind, *about = self.types[number]
        if kind == TYPE_BOOL:
            return 4
        if kind in (TYPE_INT, TYPE_FLOAT):
            return about[0] // 8
        if kind in (TYPE_VECTOR, TYPE_MATRIX):
            return about[1] * self.size(about[0])
        if kind == TYPE_ARRAY:
            return self.values.get(about[1], 0) * self.size(about[0])
        if kind == TYPE_STRUCT:
            end = 0
            for i, member in enumerate(about):
                end = max(end, self.offsets.get((number, i), end) + self.size(member))
            return end
        return 8


def disagreements(module: Module, entry: dict[str, Any]) -> list[str]:
    """Where a module is not what its entry of the index says."""
    found = []
    group = (*entry["group"], 1, 1)[:3]
    if tuple(module.group) != group:
        found.append(f"work groups of {module.group}, the index says {group}")
    words = max(1, sum(n for _, _, n in entry["words"]))
    wanted = 8 * len(entry["operands"]) + 4 * words
    if module.push_bytes not in (0, wanted):
        found.append(f"{module.push_bytes} bytes of parameters, the index says {wanted}")
    strange = sorted(set(module.spec_ids.values()) - set(range(len(entry["constants"]))))
    if strange:
        found.append(f"constants {strange} that the index does not know")
    if any(t[0] == TYPE_ARRAY and module.values.get(t[2]) == 0 for t in module.types.values()):
        found.append("an array without elements, where constants are as usual")
    return found


def overdrawn(module: Module, limits: dict[str, Any]) -> list[str]:
    """What a module asks for and a device does not give.

    Args:
        limits: shared_bytes, push_bytes, invocations, group (three numbers), capabilities (names of
            those that are switched on when the backend opens the device); what is missing is not checked.
    """
    found = []
    for name, what in (
        ("shared_bytes", "bytes of shared memory"),
        ("push_bytes", "bytes of parameters"),
    ):
        if getattr(module, name) > limits.get(name, 1 << 62):
            found.append(f"{getattr(module, name)} {what}, the device has {limits[name]}")
    x, y, z = module.group
    if x * y * z > limits.get("invocations", 1 << 62):
        found.append(f"{x * y * z} invocations, the device has {limits['invocations']}")
    if any(n > most for n, most in zip(module.group, limits.get("group", ()))):
        found.append(f"work groups of {module.group}, the device has at most {limits['group']}")
    return found


def lacking(module: Module, limits: dict[str, Any]) -> list[str]:
    """Capabilities that a module needs and a device, or its backend, does not give."""
    have = limits.get("capabilities")
    return [] if have is None else [c for c in module.capabilities if c not in have]
