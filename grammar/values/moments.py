"""Dates, times, date-times and durations: read from ISO 8601, calculated exactly, and written in one form.

A rule, a fact and a table have them as texts, so that `"2012-12-01"` is a constant like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

DATE, TIME, DATE_TIME, DURATION = MOMENTS = ("Date", "Time", "DateTime", "Duration")

UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 7 * 86400}
"""Seconds of each unit in which a rule writes a duration: `30 days`, `1 hour`."""

Timed: TypeAlias = date | time | datetime | timedelta
"""The objects of Python that moments are in data frames; a `datetime` is a `date`, too."""

WRITTEN = {
    DATE: ("a date", "2012-12-01"),
    DATE_TIME: ("a date-time", "2012-12-01T08:30:00"),
    DURATION: ("a duration", "PT1H30M"),
}
"""What the values of a kind are, and one of them as it is written. A `Time` may be a year, as in LINK."""

_DAY = UNITS["days"]
_POINT = re.compile(
    r"(?:(\d{4})-(\d\d)-(\d\d))?(?:(?:(?<=\d)[T ]|^)(\d\d):(\d\d)(?::(\d\d(?:\.\d{1,12})?))?(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_LENGTH = re.compile(
    r"(-?)P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,12})?)S)?)?", re.ASCII
)
_BEGINS = frozenset("0123456789P-")


class NoValue(ValueError):  # noqa: N818  named after the situation, as all our errors are
    """A calculation without a value; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, time, date-time or duration. Points without a zone count as UTC.

    `seconds`: since the beginning of the year 1, since midnight, or the duration's length. `offset`: of a zone, in
    minutes east of UTC; None without a zone.
    """

    kind: str
    seconds: int | Fraction
    offset: int | None = field(default=None, compare=False)

    @property
    def is_day(self) -> bool:
        """True for a date or a date-time."""
        return self.kind in (DATE, DATE_TIME)

    @property
    def local(self) -> int | Fraction:
        """The seconds in the zone."""
        return self.seconds + 60 * (self.offset or 0)

    @property
    def day(self) -> date:
        """The day in the zone. Raises NoValue for a time, a duration, and a year that no date has."""
        if not self.is_day:
            raise NoValue(f"{self} has no day")
        try:
            return date.fromordinal(int(self.local // _DAY) + 1)
        except (ValueError, OverflowError):
            raise NoValue("the years of dates are 1 to 9999") from None

    def later(self, seconds: int | Fraction) -> Moment:
        """The moment so many seconds later: a date stays one for whole days, and a time of day goes round midnight."""
        total = self.seconds + seconds
        if self.kind == TIME:
            return Moment(TIME, total % _DAY, self.offset)
        kind = DATE_TIME if self.kind == DATE and seconds % _DAY else self.kind
        moment = Moment(kind, total, self.offset)
        if self.is_day:
            _ = moment.day  # which raises NoValue for a year that no date has
        return moment

    def to_python(self, kind: str) -> Timed | None:
        """The object of Python's `datetime` for a value of this kind; None where there is none without a loss.

        A date of the kind DateTime is the moment at which it begins; a date plus hours is a date-time.
        """
        micros = Fraction(self.seconds) * 10**6
        is_other = self.kind != kind and not (self.is_day and kind in (DATE, DATE_TIME))
        # Data frames have no zones for times of day.
        if is_other or micros.denominator != 1 or (kind == TIME and self.offset is not None):
            return None
        try:
            length = timedelta(microseconds=int(micros))
            if kind == DURATION:
                return length
            zone = None if self.offset is None else timezone(timedelta(minutes=self.offset))
            found = (datetime.min + length + timedelta(minutes=self.offset or 0)).replace(tzinfo=zone)
        except (OverflowError, ValueError):
            return None
        if kind == TIME:
            return found.time()
        return found.date() if self.kind == kind == DATE else found

    def __str__(self) -> str:
        """The moment in ISO 8601, in one form: `2012-12-01T08:30:00+01:00`, `P1DT2H`."""
        if self.kind == DURATION:
            return _length_text(self.seconds)
        day = self.day.isoformat() if self.is_day else ""
        if self.kind == DATE:
            return day
        hours, rest = divmod(self.local % _DAY, 3600)
        minutes, seconds = divmod(rest, 60)
        clock = f"{hours:02}:{minutes:02}:{_digits(seconds, 2)}"
        zone = ""
        if self.offset is not None:
            sign, away = "-" if self.offset < 0 else "+", abs(self.offset)
            zone = f"{sign}{away // 60:02}:{away % 60:02}" if away else "Z"
        return f"{day}{'T' if day else ''}{clock}{zone}"


def iso_text(timed: Timed) -> str:
    """An object of Python's `datetime` in ISO 8601, as `moment_of` reads it."""
    if isinstance(timed, timedelta):
        return _length_text(_plain(Fraction(timed // timedelta(microseconds=1), 10**6)))
    return timed.isoformat()


def _length_text(seconds: int | Fraction) -> str:
    days, rest = divmod(max(seconds, -seconds), _DAY)
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    clock = [f"{amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M")) if amount]
    if rest or not (days or clock):
        clock.append(f"{_digits(rest, 1)}S")
    whole = f"{days}D" if days else ""
    return f"{'-' if seconds < 0 else ''}P{whole}{'T' if clock else ''}{''.join(clock)}"


def _digits(seconds: int | Fraction, width: int) -> str:
    """Seconds below 60 with at least so many digits before the point. Raises NoValue if their decimals do not end."""
    whole, rest = divmod(Fraction(seconds), 1)
    parts = rest * 10**12
    if parts.denominator != 1:
        raise NoValue("a part of a second has more than 12 decimal places")
    return f"{whole:0{width}}" + (f".{parts.numerator:012}".rstrip("0") if rest else "")


@lru_cache(maxsize=1 << 16)
def moment_of(text: str) -> Moment | None:
    """The moment that a text states in ISO 8601; None for another text."""
    if text[:1] not in _BEGINS:
        return None
    length = _LENGTH.fullmatch(text)
    if length is not None and text[-1] not in "PT":
        sign, *amounts = length.groups()
        sizes = (UNITS[unit] for unit in ("weeks", "days", "hours", "minutes", "seconds"))
        total = sum((size * Fraction(amount or 0) for size, amount in zip(sizes, amounts, strict=True)), Fraction(0))
        return Moment(DURATION, _plain(-total if sign else total))
    return _point(text)


def _point(text: str) -> Moment | None:
    """The date, time or date-time that a text states."""
    found = _POINT.fullmatch(text)
    if found is None or not text:
        return None
    year, month, day, hour, minute, second, zone = found.groups()
    offset = None
    if zone is not None:
        offset = 0 if zone == "Z" else (60 * int(zone[1:3]) + int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    seconds: int | Fraction = 0
    try:
        if year is not None:
            seconds = _DAY * (date(int(year), int(month), int(day)).toordinal() - 1)
    except ValueError:
        return None
    if hour is None:
        return Moment(DATE, seconds)
    if int(hour) > 23 or int(minute) > 59 or Decimal(second or 0) >= 60:
        return None
    seconds += 3600 * int(hour) + 60 * int(minute) + _plain(Fraction(second or 0)) - 60 * (offset or 0)
    return Moment(TIME if year is None else DATE_TIME, seconds, offset)


def is_written(value: object, kind: str) -> bool:
    """True for a text of a kind in WRITTEN; dates are date-times, and vice versa."""
    moment = moment_of(value) if isinstance(value, str) else None
    return moment is not None and (moment.kind == kind or (moment.is_day and kind in (DATE, DATE_TIME)))


def _plain(number: Fraction) -> int | Fraction:
    return number.numerator if number.denominator == 1 else number


def duration_text(amount: Decimal | int, unit: str) -> str | None:
    """The text of a duration such as `30 days`; None for a word that is no unit, and for a billion and more."""
    size = UNITS.get(unit) or UNITS.get(f"{unit}s")
    return None if size is None or amount >= 10**9 else str(Moment(DURATION, _plain(Fraction(amount) * size)))


def written_duration(text: str) -> str:
    """A duration of one unit as a rule writes it, such as `30 days`; empty for another text."""
    moment = moment_of(text)
    if moment is None or moment.kind != DURATION or moment.seconds < 0 or str(moment) != text:
        return ""
    unit = next((unit for unit in ("days", "hours", "minutes", "seconds") if moment.seconds % UNITS[unit] == 0), "")
    return f"{moment.seconds // UNITS[unit]} {unit}" if unit else ""
