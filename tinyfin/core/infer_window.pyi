"""Type stub of compiled shape rules."""

RULES: dict[str, object]
