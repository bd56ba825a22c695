"""What a family writes of itself in model files and on pages, and what it makes of that when it is read again.

Nothing that is read is trusted: what makes no sense is a `ModelFileError`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from softcount.errors import DataError, ModelFileError
from softcount.families.answering import Answering
from softcount.families.setting import Hyper, Params, Setting
from softcount.families.written import inner_shape
from softcount.table.schema import Field, Key, Kind

if TYPE_CHECKING:
    from softcount.families.base import Family

LARGEST = 1e150
"""Parameters, in counting units, beyond which squares and products are no numbers any more."""

MAY_BE_INFINITE = ("freedom",)
"""Parameters that have no largest value: with infinite freedom a t distribution is normal."""


class Filing(Answering):
    """The part of a family that files and reports ask for."""

    __struct_fields__: ClassVar[tuple[str, ...]]

    @property
    def word_model(self) -> str | None:
        """How it models words; None where it models none."""
        return None

    # -- itself

    @classmethod
    def key_in(cls, text: str) -> Key:
        """The column that a text names, or the block of columns with commas between them."""
        return tuple(text.split(",")) if cls.block else text

    @classmethod
    def spelt(cls, how: str) -> Family:
        """Itself with the settings that stand after its name and a colon."""
        raise DataError(f"{cls.name}:{how} is not a kind we know: nothing can stand after {cls.name}.")

    def document(self) -> dict[str, Any]:
        """Its name and its own settings."""
        return {"family": self.name, "own": {name: getattr(self, name) for name in self._own_names()}}

    @classmethod
    def check_own(cls, own: Mapping[str, Any]) -> None:
        """Refuse settings that it does not have."""
        unknown = set(own) - set(cls._own_names())
        if unknown:
            raise ModelFileError(f"family {cls.name!r} has no setting {min(unknown)!r}.")

    @classmethod
    def _own_names(cls) -> list[str]:
        return [part.name for part in fields(cls)]  # type: ignore[arg-type]  # every family is a dataclass

    @classmethod
    def reading_in(cls, own: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Those of its own settings that say how documents are read; None where it reads none."""
        return None

    # -- its columns

    def takes(self, kind: Kind) -> bool:
        """Whether it can model a column of this kind."""
        return kind.numeric

    def check_columns(self, key: Key, columns: tuple[Key, ...], alone: bool) -> None:
        """Refuse columns that do not go by this key; `alone` where nothing else is modelled."""
        if not columns or key != (columns if self.block else columns[0]):
            raise ModelFileError(f"{key!r} is {self.name} of the columns {list(columns)!r}.")

    def check_field(self, spec: Field, setting: Setting, place: int) -> None:
        """Refuse a column, the place-th of its own, that it cannot model or that has other levels than it has."""
        if not spec.used or not self.takes(spec.kind):
            raise ModelFileError(f"column {spec.key!r} ({spec.kind}) cannot be {self.name}.")
        levels = self.levels_of(setting, place)
        if levels is not None and tuple(levels) != spec.levels:
            raise ModelFileError(f"column {spec.key!r} has two different lists of levels.")

    # -- its setting

    def setting_document(self, setting: Setting) -> dict[str, Any]:
        """What is kept of its setting, besides keys and groups: plain values and tuples of them."""
        anchor, scale = tuple(map(float, setting.anchor)), tuple(map(float, setting.scale))
        return {"levels": self._kept_levels(setting), "anchor": anchor, "scale": scale, "floor": float(setting.floor)}

    def _kept_levels(self, setting: Setting) -> Any:
        return len(setting.levels)

    def setting_parts(self, document: Mapping[str, Any], specs: Sequence[Field], widest: int) -> dict[str, Any]:
        """The same back, as arguments of its `setting_type`; no table of the file is wider than `widest`."""
        levels = self._read_levels(document["levels"], specs, widest)
        anchor, scale = (np.array(document[name], dtype=float) for name in ("anchor", "scale"))
        parts = {"levels": levels, "anchor": anchor, "scale": scale, "floor": number(document["floor"], "the floor")}
        return parts | {"written": specs[0].written if len(specs) == 1 else None}

    def _read_levels(self, kept: Any, specs: Sequence[Field], widest: int) -> Sequence[object]:
        return tuple(spec.key for spec in specs) or tuple(range(whole(kept, 0, widest, "width")))

    def units(self, columns: tuple[Key, ...]) -> int:
        """How many anchors and scales it has."""
        return len(columns) or 1

    # -- its numbers

    def misshapen(self, params: Params, setting: Setting, groups: int) -> str | None:
        """What is wrong with the shape of parameters that were read, or that they are not finite, in words."""
        for name, value in params.items():
            if value.shape[:1] != (groups,):
                return f"{name} is not given for each of {groups} groups"
            if not np.isfinite(value).all() and name not in MAY_BE_INFINITE:
                return f"{name} is not finite"
            if name in MAY_BE_INFINITE and not (value > 0).all():
                return f"{name} is not above zero"
            if (np.abs(value[np.isfinite(value)]) > LARGEST).any():
                return f"{name} is beyond {LARGEST:g}"
        table, levels = params.get("probability"), setting.levels
        if table is None or table.shape[1:] == inner_shape(self._core, "probability", setting):
            return None
        return f"it has {len(levels)} levels but {table.shape[1:]} probabilities"

    def check_hyper(self, hyper: Hyper) -> str | None:
        """What makes a prior senseless, in words, or None."""
        if not all(np.isfinite(value).all() for value in hyper.values()):
            return "it imagines what is not finite"
        imagined = hyper.get("alpha", np.zeros(1))
        return None if (imagined >= 0).all() else "it imagines less than nothing"


def whole(value: Any, least: int, most: int, what: str) -> int:
    """A whole number of a file, if it is one between these."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ModelFileError(f"{what} is {value!r}, which is not a whole number between {least} and {most}.")
    return value


def number(value: Any, what: str) -> float:
    """A number of a file, if it is one."""
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise ModelFileError(f"{what} is {value!r}, which is no finite number.")
    return float(value)


def truth(value: Any, what: str) -> bool:
    """True or false, if a file says one of them."""
    if not isinstance(value, bool):
        raise ModelFileError(f"{what} is {value!r}, which is neither true nor false.")
    return value
