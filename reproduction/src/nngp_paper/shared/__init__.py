"""What several parts use: runs, reading, judging and drawing."""
