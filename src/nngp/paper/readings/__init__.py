"""What the store knows, made ready to be shown: each file reads finished runs and gives a frozen
dataclass. Nothing is computed here that takes longer than reading."""
