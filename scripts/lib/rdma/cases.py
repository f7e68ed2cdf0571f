"""The list of cases: a function with a `Play` to fill in, by its name."""

CASES = {}


def case(function):
    """Adds a case. Its name is the function's, with spaces."""
    CASES[function.__name__.replace("_", " ")] = function
    return function


def family(name, values):
    """A case for each value, which is the function's second argument."""
    def add(function):
        for value in values:
            CASES[f"{name} {value}"] = lambda play, value=value: function(play, value)
        return function
    return add
