"""Measuring whole steps: on a real GPU, on the virtual one, and one against the other."""
