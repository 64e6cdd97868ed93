"""Every error of the package: a stable code, a message, the location and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from re import findall

from attrs import evolve, field

from shardy_py.values import frozen


@frozen
class Diagnostic:
    """One problem with the input, as data.

    Args:
        code: Stable identifier, for example ``unknown-axis``.
        message: What is wrong, in one sentence.
        location: Where, in MLIR's notation (``file:line:column``), or "".
        op: The name of the op concerned, or "".
        hint: What the user can do about it, or "".
        excerpt: The text concerned, with a mark under the column, or "".
        severity: The word of its text, ``error`` or ``warning``.
    """

    code: str
    message: str
    location: str = ""
    op: str = ""
    hint: str = ""
    excerpt: str = ""
    severity: str = field(default="error", eq=False, repr=False)

    def __str__(self) -> str:
        return self.show(self.severity)

    def show(self, severity: str) -> str:
        """Return the text with another word than ``error``."""
        location = f"{self.location}: " if self.location else ""
        subject = f"'{self.op}' op: " if self.op else ""
        advice = f"\n  hint: {self.hint}" if self.hint else ""
        shown = "".join(f"\n    {line}" for line in self.excerpt.splitlines())
        return f"{location}{severity}: {subject}{self.message} [{self.code}]{shown}{advice}"


def as_warnings(items: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return diagnostics whose texts say that they are warnings."""
    return tuple(item if item.severity == "warning" else evolve(item, severity="warning") for item in items)


class ShardyError(Exception):
    """The base of all errors a caller may want to catch; carries its diagnostics."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("\n".join(str(item) for item in diagnostics))
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[type[ShardyError], tuple[Diagnostic, ...]]:
        # An exception is made again of its arguments, here the text: errors of other processes would lose the rest.
        return type(self), self.diagnostics


class ParseError(ShardyError):
    """Text that is not a valid value or module."""


class VerificationError(ShardyError):
    """A value or module that breaks an invariant."""


class RuleError(ShardyError):
    """A sharding rule that does not fit its op."""


class PluginError(ShardyError):
    """A plugin that cannot be loaded or contradicts another one."""


class UnsupportedError(ShardyError):
    """A valid program that cannot be propagated, or an input of an unknown kind."""


class OptionError(ShardyError):
    """An unknown option or an invalid value for one."""


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article.

    >>> with_article("int"), with_article("float")
    ('an int', 'a float')
    """
    return f"{'an' if noun[:1].lower() in 'aeio' else 'a'} {noun}"


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "", likeness: float = 0.6) -> str:
    """Return a hint with the known names closest to a misspelt one.

    Args:
        name: The name that does not exist.
        known: Those that do.
        otherwise: The hint where none is close.
        likeness: How alike the names must be, from 0 to 1, as `difflib` counts it.

    >>> did_you_mean("Elementwize", ["Elementwise", "Pure"])
    'did you mean Elementwise?'
    """
    from difflib import get_close_matches

    names = sorted(known)
    close = get_close_matches(name, names, n=3, cutoff=likeness)
    if not close:
        folded = {item.casefold(): item for item in names}
        close = [folded[item] for item in get_close_matches(name.casefold(), folded, n=3, cutoff=likeness)]
    return f"did you mean {' or '.join(close)}?" if close else otherwise


def unknown_name(code: str, message: str, name: object, known: Iterable[str]) -> Diagnostic:
    """Return a diagnostic for a name that does not exist, with the closest ones that do."""
    names = sorted(known)
    otherwise = f"known: {', '.join(names) or 'none'}"
    hint = did_you_mean(name, names, otherwise=otherwise) if isinstance(name, str) else otherwise
    return Diagnostic(code, message, hint=hint)


class RuleWarning(UserWarning):
    """A sharding rule that fits its op and is most likely a mistake all the same."""


class WorkerError(ShardyError):
    """A child process that ended before its work was done."""


def require_library(name: str, *, purpose: str, extra: str, at_least: tuple[int, ...] = ()) -> None:
    """Check that a library of an extra is installed.

    Args:
        name: The module to import.
        purpose: What needs it, with the verb: ``a search needs``.
        extra: The extra that brings it.
        at_least: The first version of it that will do, where older ones may be there for other purposes.

    Raises:
        OptionError: it cannot be imported, or is too old.
    """
    hint = f"pip install 'shardy_py[{extra}]'"
    try:
        import_module(name)
    except ImportError as error:
        message = f"{purpose} {name}, which cannot be imported: {error}"
        raise OptionError(Diagnostic(f"no-{name}", message, hint=hint)) from None
    if at_least:
        from importlib.metadata import version

        installed = version(name)
        if tuple(map(int, findall(r"\d+", installed)[: len(at_least)])) < at_least:
            message = f"{purpose} {name} {'.'.join(map(str, at_least))} or later, and {installed} is installed"
            raise OptionError(Diagnostic(f"old-{name}", message, hint=hint))


def read_text_file(path: str | Path, *, code: str, what: str, hint: str) -> str:
    """Return the text of a file that an option names.

    Args:
        path: The file.
        code: The code of the error.
        what: What the file should hold: ``the machine``.
        hint: What to give instead.

    Raises:
        OptionError: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise OptionError(Diagnostic(code, f"{what} cannot be read: {reason}", str(path), hint=hint)) from None
