# The compiled part: __init__.pyi describes what programs use of it.
from typing import Any

def __getattr__(name: str) -> Any: ...
