"""The error tree."""

import inspect

import pytest

import labkit.errors
from labkit.errors import CaptureError, InvalidArgument, LabkitError, MissingExtra

ERRORS = [value for _, value in inspect.getmembers(labkit.errors, inspect.isclass)]


@pytest.mark.parametrize("error", ERRORS)
def test_every_error_is_a_labkit_error_and_in_the_tree(error):
    assert issubclass(error, LabkitError)
    assert error.__name__ in labkit.errors.__doc__
    assert error.__doc__


def test_the_tree_shows_each_errors_parents():
    lines = labkit.errors.__doc__.splitlines()
    depths, path = {}, []
    for line in lines:
        name = next((error.__name__ for error in ERRORS if error.__name__ in line.split()), None)
        if name is None:
            continue
        depth = line.index(name)
        path = [entry for entry in path if entry[0] < depth]
        depths[name] = path[-1][1] if path else "LabkitError"
        path.append((depth, name))
    assert depths == {
        error.__name__: next(base.__name__ for base in (*error.__bases__, LabkitError) if issubclass(base, LabkitError))
        for error in ERRORS
    }


def test_invalid_argument_names_argument_value_and_what_is_allowed():
    error = InvalidArgument("top_p", 1.5, "a number above 0 and at most 1")
    assert str(error) == "top_p=1.5: a number above 0 and at most 1"
    assert isinstance(error, ValueError)
    assert (error.argument, error.value, error.allowed) == ("top_p", 1.5, "a number above 0 and at most 1")


def test_a_missing_extra_says_how_to_install_it():
    error = MissingExtra("plotly", "lab")
    assert isinstance(error, ImportError)
    assert str(error) == "plotly is not installed: pip install 'labkit[lab]'"


def test_a_capture_error_carries_cudas_code():
    assert (CaptureError(901, "broken").code, str(CaptureError(901, "broken"))) == (901, "broken (CUDA error 901)")
    assert str(CaptureError(None, "pageable")) == "pageable"
