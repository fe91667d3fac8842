"""What each Python of a run does first: SkyRL's types need the `TypedDict` of Python 3.12."""

import sys
import typing

if sys.version_info < (3, 12):
    import typing_extensions

    typing.TypedDict = typing_extensions.TypedDict
