"""Type stub of the compiled shape rules."""

RULES: dict[str, object]
