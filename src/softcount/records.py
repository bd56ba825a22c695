"""Dataclasses, made in a fraction of the time that the standard library takes.

It writes and compiles seven methods for each frozen class, half a millisecond; the library has hundreds of such
classes, a quarter of a small fit from the shell. Here only `__init__`, which is called often, is compiled; the other
methods are closures over the names of the fields. All that works with dataclasses works with these: `replace`,
`fields`, `asdict`, `match`, pickling, a dataclass of the standard library derived from one of ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type)
Methods = dict[str, Callable[..., Any] | None]


class _Fresh:
    """Stands for a value that is made anew for every instance, as signatures show it."""

    def __repr__(self) -> str:
        return "<factory>"


_FRESH = _Fresh()


@overload
def dataclass(cls: Class, /) -> Class: ...
@overload
def dataclass(
    *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True
) -> Callable[[Class], Class]: ...
@dataclass_transform(field_specifiers=(field,))
def dataclass(
    cls: Any = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True, repr: bool = True
) -> Any:
    """A class whose annotations are its fields, as `dataclasses.dataclass` makes it; without `InitVar` and `KW_ONLY`.

    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(1.0), Point(1.0) == Point(1.0, 0.0), dataclasses.replace(Point(1.0), y=2.0)
    (Point(x=1.0, y=0.0), True, Point(x=1.0, y=2.0))
    >>> Point(1.0).x = 3.0
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """

    def made(cls: type) -> type:
        cls.__doc__ = cls.__doc__ or cls.__name__  # where there is none, the signature would be asked for, at a price
        frozen_base = frozen and any(dataclasses.is_dataclass(base) for base in cls.__bases__)
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen_base, slots=slots)(cls)
        cls.__dataclass_params__.frozen = frozen  # type: ignore[attr-defined]
        fields = dataclasses.fields(cls)
        methods: Methods = {"__init__": _initializer(cls, fields, frozen, slots)}
        if repr:
            methods["__repr__"] = _representation([each.name for each in fields if each.repr])
        if eq:
            methods |= _comparison([each.name for each in fields if each.compare], frozen)
        if frozen:
            methods |= _refusals(cls, {each.name for each in fields})
        if frozen and slots:
            methods |= _pickling([each.name for each in fields])
        for name, method in methods.items():
            if cls.__dict__.get(name) is None:
                setattr(cls, name, method)
        return cls

    return made if cls is None else made(cls)


def _initializer(cls: type, fields: Sequence[Field[Any]], frozen: bool, slots: bool) -> Callable[..., None]:
    """`__init__`, compiled: the one method that is called often enough."""
    scope: dict[str, Any] = {"_put": object.__setattr__, "_fresh": _FRESH}
    arguments, lines = ["self"], []
    for each in fields:
        name, default, factory = each.name, f"_default_{each.name}", f"_factory_{each.name}"
        value = name
        if each.default_factory is not MISSING:
            scope[factory] = each.default_factory
            value = f"{factory}() if {name} is _fresh else {name}" if each.init else f"{factory}()"
            arguments += [f"{name}=_fresh"] * each.init
        elif each.default is not MISSING:
            scope[default] = each.default
            arguments += [f"{name}={default}"] * each.init
            value = name if each.init else default
        elif each.init:
            arguments.append(name)
        if each.init or each.default_factory is not MISSING or (slots and each.default is not MISSING):
            lines.append(f" _put(self, {name!r}, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(arguments)}):\n" + ("\n".join(lines) or " pass"), scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {each.name: each.type for each in fields if each.init} | {"return": None}
    return made


def _representation(names: Sequence[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _comparison(names: Sequence[str], frozen: bool) -> Methods:
    """Equality of all fields in order; what is frozen has the hash of its fields, anything else has none."""
    values = _values_of(names)

    def __eq__(self: Any, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _refusals(cls: Any, names: set[str]) -> Methods:
    """No field is set or deleted; a class derived from this one may have attributes of its own."""

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": __setattr__, "__delattr__": __delattr__}


def _pickling(names: Sequence[str]) -> Methods:
    """What is frozen and has slots is pickled by its fields: attributes could not be set."""

    def __getstate__(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: Sequence[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": __getstate__, "__setstate__": __setstate__}
