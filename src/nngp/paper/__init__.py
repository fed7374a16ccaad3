"""Stage 9, the paper end to end: its experiments, computed and drawn. Nothing above imports it."""
