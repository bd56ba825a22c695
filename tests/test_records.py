"""Our dataclasses beside the standard library's: the same classes, made by both, do the same."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from softcount.records import dataclass

MAKERS: dict[str, Any] = {"ours": dataclass, "theirs": dataclasses.dataclass}
MADE: dict[str, dict[str, type]] = {}


def classes(make: Callable[..., Any]) -> dict[str, type]:
    @make(frozen=True, slots=True)
    class Plain:
        """Three fields."""

        width: float
        names: list[str] = field(default_factory=list)
        kind: str = "x"

    @make(frozen=True)
    class Derived(Plain):
        limit: ClassVar[int] = 3
        extra: int | None = None

        def __post_init__(self) -> None:
            object.__setattr__(self, "kind", self.kind.upper())

    @make(frozen=True, slots=True)
    class Ready:
        width: float
        area: float = field(init=False, repr=False, compare=False)
        seen: dict[str, int] = field(init=False, default_factory=dict)
        fixed: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            object.__setattr__(self, "area", self.width**2)

    @make(slots=True)
    class Changing:
        width: float
        kind: str = "x"

    @make(frozen=True, slots=True, eq=False, repr=False)
    class Itself:
        width: float

    @make(frozen=True)
    class Own:
        width: float

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

    @make
    class Empty:
        pass

    return {each.__name__: each for each in (Plain, Derived, Ready, Changing, Itself, Own, Empty)}


for maker in MAKERS:
    MADE[maker] = classes(MAKERS[maker])


def sides(name: str) -> tuple[type, type]:
    return MADE["ours"][name], MADE["theirs"][name]


def outcome(does: Callable[[], Any]) -> Any:
    try:
        return does()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


ARGUMENTS: list[tuple[str, tuple[Any, ...]]] = [
    ("Plain", (1.5,)),
    ("Plain", (1.5, ["a"], "b")),
    ("Derived", (2.0, ["a"], "b", 5)),
    ("Ready", (3.0,)),
    ("Changing", (1.0,)),
    ("Own", (1.0,)),
    ("Empty", ()),
]


@pytest.mark.parametrize(("name", "given"), ARGUMENTS)
def test_instances_look_and_compare_as_the_standard_librarys(name: str, given: tuple[Any, ...]) -> None:
    def told(cls: Any) -> list[Any]:
        made, again = cls(*given), cls(*given)
        changed = dataclasses.replace(made, width=9.0) if given else made
        return [
            repr(made),
            made == again,
            made == changed,
            made == 3,
            outcome(lambda: hash(made) == hash(again)),
            dataclasses.asdict(made),
            dataclasses.astuple(changed),
            getattr(made, "area", None),
            hasattr(made, "__dict__"),
            cls.__match_args__,
        ]

    ours, theirs = map(told, sides(name))
    assert ours == theirs


@pytest.mark.parametrize("name", MADE["ours"])
def test_a_class_says_the_same_of_itself(name: str) -> None:
    def told(cls: Any) -> list[Any]:
        wrong = outcome(lambda: cls(width=1.0, nothing=2))
        return [
            str(inspect.signature(cls)),
            [each.name for each in dataclasses.fields(cls)],
            wrong,
            cls.__init__.__qualname__,
        ]

    ours, theirs = map(told, sides(name))
    assert ours == theirs


@pytest.mark.parametrize(
    ("name", "field_name"), [("Plain", "width"), ("Derived", "kind"), ("Derived", "new"), ("Own", "width")]
)
def test_what_is_frozen_stays(name: str, field_name: str) -> None:
    made = sides(name)[0](1.0)
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{field_name}'"):
        setattr(made, field_name, 2.0)
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{field_name}'"):
        delattr(made, field_name)


def test_a_class_without_equality_equals_itself_alone() -> None:
    cls: Any = sides("Itself")[0]
    one, other = cls(1.0), cls(1.0)
    assert one == one and one != other and len({one, other}) == 2


def test_a_class_derived_from_ours_by_the_standard_library_is_one_of_its_own() -> None:
    base: Any = sides("Plain")[0]

    @dataclasses.dataclass(frozen=True, slots=True)
    class Wider(base):  # type: ignore[misc]
        depth: int = 1

    assert dataclasses.astuple(Wider(1.0, ["a"], depth=2)) == (1.0, ["a"], "x", 2)
    with pytest.raises(FrozenInstanceError):
        Wider(1.0).width = 2.0


def test_a_derived_class_that_is_no_dataclass_may_hold_more() -> None:
    class More(MADE["ours"]["Plain"]):  # type: ignore[misc]
        pass

    made: Any = More(1.0)
    made.note = "kept"
    assert made.note == "kept" and repr(made).startswith("test_a_derived_class")
    with pytest.raises(FrozenInstanceError):
        made.width = 2.0


@dataclass(frozen=True, slots=True)
class Pickled:
    width: float
    inner: Pickled | None = None


def test_what_is_frozen_is_pickled() -> None:
    made = Pickled(1.0, Pickled(2.0))
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_record_that_holds_itself_can_be_shown() -> None:
    made = Pickled(1.0)
    object.__setattr__(made, "inner", made)
    assert repr(made) == "Pickled(width=1.0, inner=...)"
