"""Pictures of stored numbers. They compute nothing, and matplotlib is imported only here."""
