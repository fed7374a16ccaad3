"""Shared by several parts: runs, reading, judging and drawing."""
