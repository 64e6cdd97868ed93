"""The attributes of an op as a mapping: decoded on demand, shared between ops that have the same ones."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping, MutableMapping, Sequence, ValuesView
from typing import Any

from jaxlib.mlir import ir

from shardy_py.frontends.mlir.attribute_decoders import WITHOUT_SYMBOLS
from shardy_py.frontends.mlir.codec import Codec
from shardy_py.frontends.mlir.kept_tables import AttributeContents
from shardy_py.ir.graph.attributes import OpaqueElements, RawAttribute, symbols_of
from shardy_py.ir.graph.kinds import SharedOpKind, SharedOpKinds
from shardy_py.ir.graph.program import Value
from shardy_py.support.identity import identity

MISSING = object()
"""Stands for an attribute that was removed."""


_COMPARED_BY_VALUE = WITHOUT_SYMBOLS - {ir.FloatAttr, ir.DenseFPElementsAttr}
"""The classes of native attributes whose values are made fast, and mean the same everywhere."""
_RUNS_BEFORE_DECODING = 2
"""The run in which all attributes are decoded, to be kept: one that comes twice may come again."""


def _is_local(text: str) -> bool:
    """Return whether the text of an attribute refers to something of its module: a symbol, or a resource."""
    return "@" in text or "_resource<" in text


class AttributeSet:
    """The attributes of ops that have exactly the same ones; compared by identity.

    Of a set that an earlier run knew by its values the native attributes are read when one of them is written.

    Attributes:
        native: Name to native attribute; empty where all attributes are decoded already.
        decoded: Name to attribute, of those that were asked for.
        contents: What holds for these attributes in other runs, too.
        kinds: The kinds of the ops of the module; None for attributes of which no kinds are known.
        is_complete: Whether there is no other attribute, one that the bindings have no class for.
        changed: The attributes of ops that changed since they were written, by identity; one for all sets of a module.
    """

    __slots__ = (
        *("_all", "_codec", "_natives", "_overlays", "_source", "_texts"),
        *("changed", "contents", "decoded", "is_complete", "kinds", "native"),
    )

    def __init__(
        self,
        codec: Codec,
        native: dict[str, ir.Attribute],
        changed: dict[int, NativeAttributes],
        contents: AttributeContents | None = None,
        kinds: SharedOpKinds | None = None,
        source: ir.Operation | None = None,
    ) -> None:
        self._codec = codec
        self._overlays: dict[tuple[str, int], dict[str, Any]] = {}
        self.native = native
        self.contents = contents or AttributeContents()
        self.kinds = kinds
        self.decoded: dict[str, Any] = self.contents.decoded or {}
        self.changed = changed
        self.is_complete = True
        self._all: dict[str, Any] | None = None
        self._natives = native if source is None else None
        self._source = source
        self._texts: dict[str, str] = {}

    def natives(self) -> dict[str, ir.Attribute]:
        """Return all native attributes, those that the bindings have a class for."""
        if self._natives is None:
            assert self._source is not None, "without native attributes there is an op that has them"
            items = self._source.attributes.items()
            # The op may have others by now: shardings that were written.
            self._natives = {name: native for name, native in items if name in self.decoded}
            self._source = None
        return self._natives

    def native_of(self, name: str) -> ir.Attribute | None:
        """Return a native attribute, or None if there is none of that name."""
        return self.natives().get(name) if name in self else None

    def release(self, native: ir.Operation) -> None:
        """Read the native attributes if they were to be read from an op that is about to be erased."""
        if self._source is not None and self._source == native:
            self.natives()

    def __contains__(self, name: object) -> bool:
        return name in self.native or name in self.decoded

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute, decoded."""
        value = self.decoded.get(name, MISSING)
        if value is not MISSING:
            return value
        native = self.native.get(name)
        if native is None:
            return default
        value = self.decoded[name] = self._codec.decode(native)
        return value

    @property
    def holders(self) -> Sequence[str]:
        """The names of the attributes that may refer to symbols; of most that is clear without decoding."""
        holders = self.contents.holders
        if holders is None:
            natives = self.natives()
            holders = [name for name, native in natives.items() if type(native) not in WITHOUT_SYMBOLS]
            if not self.is_complete:
                holders += [name for name in self.names if name not in natives]
            self.contents.holders = holders
        return holders

    @property
    def symbols(self) -> Sequence[str]:
        """The names of the symbols to which the attributes refer."""
        symbols = self.contents.symbols
        if symbols is None:
            values = [self.get(name) for name in self.holders if name in self.decoded or "@" in self._text(name)]
            symbols = self.contents.symbols = symbols_of(values) if values else ()
        return symbols

    @property
    def look(self) -> Hashable | None:
        """A value that is equal for attributes that mean the same in any module; None where that is not known.

        The texts of lists, dictionaries and attributes of dialects are made much faster than their parts.
        """
        parts: list[Hashable] = []
        for name, native in self.natives().items():
            kind = type(native)
            if kind is ir.DenseFPElementsAttr:
                # It may be long, and says nothing about shardings.
                return None
            look = self.get(name) if kind in _COMPARED_BY_VALUE else self._text(name)
            if type(look) is OpaqueElements or (kind not in _COMPARED_BY_VALUE and _is_local(look)):
                return None
            parts.append((name, kind, look))
        return tuple(parts) if self.is_complete else None

    def _text(self, name: str) -> str:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = str(self.natives()[name])
        return text

    @property
    def names(self) -> Sequence[str]:
        """The names of the attributes."""
        # Decoded ones that are not native are those without a class, or all.
        return [*self.native, *[name for name in self.decoded if name not in self.native]]

    def all(self) -> Mapping[str, Any]:
        """Return all attributes, decoded."""
        if self._all is None:
            self._all = {name: self.get(name) for name in self.names}
        return self._all

    def overlay(self, name: str, value: Any) -> Mapping[str, Any]:
        """Return a mapping with one item; ops with these attributes that make the same change share it."""
        # By identity, as equal values need not be the same: 1 equals True. The mapping keeps the value alive.
        key = name, identity(value)
        overlay = self._overlays.get(key)
        if overlay is None:
            overlay = self._overlays[key] = {name: value}
        return overlay


class AttributeSets:
    """Makes the attribute sets of a module.

    Attributes:
        changed: The attributes of ops that changed since the last `write_back`, by identity.
    """

    __slots__ = ("_codec", "changed")

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self.changed: dict[int, NativeAttributes] = {}

    def of(
        self, native: ir.Operation, contents: AttributeContents | None = None, kinds: SharedOpKinds | None = None
    ) -> AttributeSet:
        """Return the attributes an op has now, as a set of its own.

        Args:
            native: The op.
            contents: What is known of them.
            kinds: The kinds of the ops with known contents.
        """
        if contents is not None and contents.decoded is not None:
            return AttributeSet(self._codec, {}, self.changed, contents, kinds, native)
        try:
            result = AttributeSet(self._codec, dict(native.attributes.items()), self.changed, contents, kinds)
        except TypeError:
            return self._undecodable(native, contents)
        if contents is not None and contents.runs == _RUNS_BEFORE_DECODING:
            contents.keep(dict(result.all()))
        return result

    def _undecodable(self, native: ir.Operation, contents: AttributeContents | None) -> AttributeSet:
        """Return the attributes of an op with one that the bindings have no class for (complex constants, locations).

        Such an attribute is represented by its text, which only the pair of name and attribute can tell; to ask the
        pair for its attribute would end the process.
        """
        attributes = native.attributes
        natives: dict[str, ir.Attribute] = {}
        texts: dict[str, Any] = {}
        for index in range(len(attributes)):
            named = attributes[index]
            try:
                natives[named.name] = attributes[named.name]
            except TypeError:
                texts[named.name] = RawAttribute(_text(named))
        result = AttributeSet(self._codec, natives, self.changed, contents)
        result.decoded.update(texts)
        result.is_complete = False
        return result


class NativeAttributes(MutableMapping[str, Any]):
    """The attributes of one op: a shared set, and the changes since; for a native op also the handle of its op.

    The first change enters the mapping among the changed ones that `write_back` works off. A copy belongs to no op; an
    op made with it gets the native attributes unchanged, whatever they are.

    Attributes:
        base: The set the op had natively when it was read.
        native: The native op, or None.
        operands: What the native op has as operands.
        model: The attributes of the op this is a copy of; None for an op's own.
        overlay: The changes since then, whether they are written or not; ops may share it, so it is replaced and never
            changed.
        key: The same object for ops with the same attributes; None once there are changes.
        kind: The same object for ops with the same name, attributes and types; None once there are changes, or where
            it is not known.
    """

    __slots__ = ("base", "key", "kind", "model", "native", "operands", "overlay")

    def __init__(
        self,
        base: AttributeSet,
        native: Any,
        operands: Sequence[Value] = (),
        overlay: Mapping[str, Any] | None = None,
    ) -> None:
        self.base = base
        self.native = native
        self.operands = operands
        self.model: NativeAttributes | None = None
        self.overlay = overlay
        self.key = base if overlay is None else None
        self.kind: SharedOpKind | None = None

    @property
    def model_native(self) -> Any:
        """The native op whose attributes these are or were; None if it is gone."""
        return self.native if self.model is None else self.model.native

    @property
    def symbols(self) -> Sequence[str]:
        """The names of the symbols to which the attributes refer."""
        overlay = self.overlay
        if overlay is None:
            return self.base.symbols
        names = symbols_of(overlay.values())
        for name in self.base.holders:
            if name not in overlay:
                names += symbols_of((self.base.get(name),))
        return names

    @property
    def parts(self) -> tuple[object, object]:
        """Two objects that never change; where both are the same for two ops, so are the attributes."""
        return self.base, self.overlay

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute."""
        overlay, base = self.overlay, self.base
        if overlay is not None and name in overlay:
            value = overlay[name]
            return default if value is MISSING else value
        # Most were asked for before, and of the others most are not there.
        value = base.decoded.get(name, MISSING)
        if value is not MISSING:
            return value
        return base.get(name) if name in base.native else default

    def __getitem__(self, name: str) -> Any:
        value = self.base.decoded.get(name, MISSING) if self.overlay is None else MISSING
        if value is MISSING:
            value = self.get(name, MISSING)
        if value is MISSING:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        overlay, base = self.overlay, self.base
        if overlay is not None and name in overlay:
            return overlay[name] is not MISSING  # type: ignore[index]
        return name in base.native or name in base.decoded

    def __setitem__(self, name: str, value: Any) -> None:
        base = self.base
        if self.overlay is not None or name in base.native or name in base.decoded:
            old = self.get(name, MISSING)
            if old is value or (type(old) is type(value) and old == value):
                return
        self._change(name, value)

    @staticmethod
    def set_in_each(name: str, pairs: Iterable[tuple[MutableMapping[str, Any], Any]]) -> None:
        """Set one attribute of many ops; what they share is looked up once per set and value."""
        overlays: dict[tuple[int, int], Mapping[str, Any]] = {}
        for attributes, value in pairs:
            if type(attributes) is not NativeAttributes or attributes.overlay is not None:
                attributes[name] = value
                continue
            base = attributes.base
            # Sets and values live as long as the pairs.
            key = identity(base), identity(value)
            overlay = overlays.get(key)
            if overlay is None:
                if name in base:
                    attributes[name] = value
                    continue
                overlay = overlays[key] = base.overlay(name, value)
            if attributes.native is not None:
                base.changed[identity(attributes)] = attributes
            attributes.overlay, attributes.key, attributes.kind = overlay, None, None

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._change(name, MISSING)

    def _change(self, name: str, value: Any) -> None:
        base, overlay = self.base, self.overlay
        if self.native is not None:
            base.changed[identity(self)] = self
        self.overlay = {**overlay, name: value} if overlay else base.overlay(name, value)
        self.key = self.kind = None

    def _all(self) -> Mapping[str, Any]:
        if self.overlay is None:
            return self.base.all()
        items = {**self.base.all(), **self.overlay}
        return {name: value for name, value in items.items() if value is not MISSING}

    # The two of the base class make an object, and a look-up for each item.

    def values(self) -> ValuesView[Any]:
        """Return the attributes without their names."""
        return self._all().values()

    def items(self) -> ItemsView[str, Any]:
        """Return the names with the attributes."""
        return self._all().items()

    def _names(self) -> Sequence[str]:
        names, overlay = self.base.names, self.overlay
        if overlay is None:
            return names
        remaining = [name for name in names if overlay.get(name) is not MISSING]
        return remaining + [name for name, value in overlay.items() if value is not MISSING and name not in remaining]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def copy(self) -> NativeAttributes:
        """Return a copy for another op; changes to either do not touch the other."""
        result = NativeAttributes(self.base, None, (), self.overlay)
        result.model = self if self.model is None else self.model
        result.kind = self.kind
        return result

    __copy__ = copy

    def __repr__(self) -> str:
        return repr(dict(self._all()))


def _text(named: ir.NamedAttribute) -> str:
    """Return the attribute of a pair as text: the pair prints as ``NamedAttribute(name=attribute)``."""
    return str(named).removeprefix(f"NamedAttribute({named.name}=").removesuffix(")")
