"""Pure functions from a Trace to plain dataclasses: no drawing, no device, no clock."""
