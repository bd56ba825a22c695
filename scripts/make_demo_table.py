"""Write the bundled table of second-hand bicycles, the same bytes every time.

Usage: python scripts/make_demo_table.py [OUT.csv]

The table is made up, not collected: each row first draws its type, then every other column given the type. About a
tenth of the rows take their columns from another type, as odd bicycles do, and holes are punched at random. Everything
is drawn from `random.random()` alone, the one method whose sequence Python promises never to change.
"""

from __future__ import annotations

import csv
import io
import math
import random
import sys
from pathlib import Path
from statistics import NormalDist
from typing import Any

ROWS = 520
SEED = 20
OUT = Path(__file__).resolve().parent.parent / "src" / "softcount" / "demo" / "bicycles.csv"

HEADER = [
    "listing", "currency", "postcode", "frame_cm", "age_years", "weight_kg", "price",
    "gears", "photos", "lights", "brakes", "colour", "note", "type",
]  # fmt: skip

TYPES = {"city": 0.45, "road": 0.30, "mountain": 0.25}

NUMBERS: dict[str, dict[str, tuple[float, float]]] = {  # mean and standard deviation; the price is of the logarithm
    "frame_cm": {"city": (53, 4.5), "road": (55.5, 4), "mountain": (48, 4.5)},
    "age_years": {"city": (11, 5), "road": (7, 4), "mountain": (6, 3.5)},
    "weight_kg": {"city": (16.2, 2.6), "road": (10.8, 1.9), "mountain": (13.6, 2.1)},
    "price": {"city": (4.9, 0.6), "road": (6.3, 0.7), "mountain": (6.0, 0.7)},
}
PHOTOS = {"city": 2.0, "road": 5.0, "mountain": 4.0}

CHOICES: dict[str, dict[str, dict[str, float]]] = {
    "postcode": {
        "city": {"01067": 4, "01099": 4, "04109": 6, "06108": 3, "09111": 2, "10115": 8, "20095": 5, "80331": 2},
        "road": {"01067": 3, "01099": 3, "04109": 4, "06108": 2, "09111": 2, "10115": 6, "20095": 4, "80331": 6},
        "mountain": {"01067": 4, "01099": 5, "04109": 2, "06108": 2, "09111": 5, "10115": 3, "20095": 1, "80331": 9},
    },
    "gears": {
        "city": {"1": 1, "3": 4, "7": 5, "8": 2, "18": 2, "21": 4, "24": 1},
        "road": {"1": 1, "7": 1, "14": 2, "16": 3, "18": 4, "20": 3, "21": 3, "24": 1},
        "mountain": {"7": 1, "10": 1, "12": 2, "18": 2, "21": 5, "24": 4, "27": 3},
    },
    "lights": {"city": {"yes": 8, "no": 2}, "road": {"yes": 3, "no": 7}, "mountain": {"yes": 2, "no": 8}},
    "brakes": {
        "city": {"rim": 6, "coaster": 5, "disc": 1, "drum": 0.25},
        "road": {"rim": 8, "disc": 3},
        "mountain": {"rim": 4, "disc": 8},
    },
    "colour": {
        "city": {"black": 5, "blue": 3, "green": 2, "red": 2, "white": 2, "silver": 2},
        "road": {"black": 4, "white": 4, "red": 3, "blue": 2, "silver": 2},
        "mountain": {"black": 5, "orange": 3, "green": 3, "blue": 2, "red": 2},
    },
}

# Share of missing cells, and the ways they are written: different hands filled this table.
HOLES: dict[str, tuple[float, tuple[str, ...]]] = {
    "frame_cm": (0.08, ("", "NA")),
    "age_years": (0.15, ("", "NA", "?")),
    "weight_kg": (0.22, ("", "?", "NaN")),
    "price": (0.03, ("",)),
    "lights": (0.06, ("", "?")),
    "brakes": (0.05, ("", "NA")),
    "note": (0.30, ("",)),
    "type": (0.025, ("", "?")),
}

OPENINGS = ("Sold as seen", "Well kept", "Rides fine", "Needs a chain", "Stored indoors", "Scratched", "Loud bell")
DETAILS = ("new tyres", "saddle 1½ years old", "pump included", "no key for lock", 'sticker "fast"', "rust on the rack")
ENDINGS = ("collect only", "can be posted", "price is firm", "swap possible", "evenings only")


class Dice:
    """Draws made from `random.random()` alone."""

    def __init__(self, seed: int) -> None:
        self.uniform = random.Random(seed).random

    def chance(self, share: float) -> bool:
        return self.uniform() < share

    def pick(self, options: tuple[str, ...]) -> str:
        return options[int(self.uniform() * len(options))]

    def weighted(self, shares: dict[str, float]) -> str:
        point = self.uniform() * sum(shares.values())
        for level, share in shares.items():
            point -= share
            if point < 0:
                return level
        return level

    def normal(self, mean: float, deviation: float) -> float:
        return NormalDist(mean, deviation).inv_cdf(min(max(self.uniform(), 1e-9), 1 - 1e-9))

    def poisson(self, rate: float) -> int:
        floor, product, count = math.exp(-rate), self.uniform(), 0
        while product > floor:
            product *= self.uniform()
            count += 1
        return count


def note(dice: Dice) -> str:
    """A remark with commas, quotes, and sometimes a line break in the middle."""
    parts = [dice.pick(OPENINGS), dice.pick(DETAILS), dice.pick(ENDINGS)]
    return (",\n" if dice.chance(0.06) else ", ").join(parts)


def row(number: int, dice: Dice) -> dict[str, Any]:
    """One listing, complete; holes come later."""
    kind = dice.weighted(TYPES)
    source = dice.weighted(TYPES) if dice.chance(0.18) else kind
    numbers = {name: dice.normal(*of[source]) for name, of in NUMBERS.items()}
    return {
        "listing": f"B{dice.uniform() * 9000 + 1000:.0f}-{number:04d}",
        "currency": "EUR",
        **{name: dice.weighted(of[source]) for name, of in CHOICES.items()},
        "frame_cm": f"{numbers['frame_cm']:.0f}",
        "age_years": f"{max(numbers['age_years'], 0.5):.1f}",
        "weight_kg": f"{numbers['weight_kg']:.1f}",
        "price": f"{math.exp(numbers['price']):.2f}",
        "photos": dice.poisson(PHOTOS[source]),
        "note": note(dice),
        "type": kind,
    }


def with_holes(cells: dict[str, Any], dice: Dice) -> dict[str, Any]:
    for name, (share, ways) in HOLES.items():
        if dice.chance(share):
            cells[name] = dice.pick(ways)
    return cells


def table() -> bytes:
    """The whole file: UTF-8 with a byte-order mark, Windows line ends."""
    dice = Dice(SEED)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, HEADER, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(with_holes(row(number, dice), dice) for number in range(1, ROWS + 1))
    return text.getvalue().encode("utf-8-sig")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    target.write_bytes(table())
    print(f"{target}: {ROWS} rows", file=sys.stderr)
