"""Rule files that are open in an editor: faults, meanings, completions, places and new names, for `hapax rules lsp`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hapax.grammar.checking.library_checks import check_read
from hapax.grammar.errors import Diagnostic, HapaxError, Place
from hapax.grammar.parsing.occurrences import NameKind, Occurrence, occurrences
from hapax.grammar.parsing.parser import KEYWORDS, ReadRules, read_rules, read_texts, statement_tokens
from hapax.grammar.rules import Library, PredicateSignature
from hapax.grammar.terms import Literal
from hapax.grammar.writing.printing import signature_text
from hapax.grammar.writing.verbalize import statement_text
from hapax.grammar.writing.words import counted
from hapax.kb.store import KnowledgeBase

ATTRIBUTES = ("@name", "@domain", "@principle", "@polarity", "@generic", "@most", "@withdrawn", "@example")


@dataclass(frozen=True, slots=True)
class Completion:
    """A name that fits at a place. `detail`: what it stands for; `arguments`: of a predicate, to fill in."""

    name: str
    kind: NameKind | None
    detail: str = ""
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A declaration or a rule, and its place."""

    name: str
    kind: NameKind
    detail: str
    place: Place


def files_with(file: str, paths: Iterable[str | Path]) -> list[str]:
    """Absolute names of the rule files to which `file` belongs.

    These are the rule files among the files and folders, with all that they import, if `file` is one of them; otherwise
    `file` and what it imports. LINK's JSON is left out.
    """
    for among in (list(paths), [file]):
        files = [str(Path(name).resolve()) for name in read_rules(among).files]
        if file in files:
            # LINK's JSON has no rule text that an editor could show.
            return [name for name in files if not name.endswith(".json")]
    return [file]


class RuleDocuments:
    """The texts of rule files that belong together, by file name. Lines and columns count from 1.

    `database`: a knowledge base whose facts are counted. The texts may be faulty; what can be read is used.
    """

    def __init__(self, texts: Mapping[str, str], database: Path | None = None) -> None:
        self.texts = dict(texts)
        self._database = database

    @cached_property
    def _read(self) -> ReadRules:
        return read_texts(self.texts.items(), import_files=True)

    @cached_property
    def _named_imports(self) -> dict[str, dict[str, str]]:
        """By file: the files that it imports under a name, by the ending that the name gives to theirs."""
        found: dict[str, dict[str, str]] = {}
        for file, text in self.texts.items():
            for tokens in statement_tokens(text)[1]:
                words = [str(token) for token in tokens]
                if words[0] == "import" and len(words) == 4 and words[2] == "as":
                    imported = str((Path(file).parent / words[1].strip('"')).resolve())
                    found.setdefault(file, {})[f"_{words[3]}"] = imported
        return found

    @cached_property
    def _named_files(self) -> frozenset[str]:
        """Files that others import under a name, so that their predicates and rules have other names there."""
        return frozenset(file for imports in self._named_imports.values() for file in imports.values())

    def _origin(self, use: Occurrence) -> tuple[NameKind, str, str]:
        """The kind of a name, the name where it is declared, and the file if others import that under a name."""
        file, name = use.place.file, use.name
        if use.kind is NameKind.TYPE:
            return use.kind, name, ""  # types keep their names
        for ending, imported in self._named_imports.get(file, {}).items():
            base = name.removesuffix(ending)
            if base != name and imported in self.texts and (imported, use.kind, base) in self._names:
                return self._origin(Occurrence(use.kind, base, Place(imported), use.arity))
        return use.kind, name, file if file in self._named_files else ""

    @cached_property
    def _names(self) -> frozenset[tuple[str, NameKind, str]]:
        """The names of each file."""
        return frozenset((use.place.file, use.kind, use.name) for use in self._occurrences)

    @property
    def _library(self) -> Library:
        return self._read.library

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The faults that `hapax check` finds in these files."""
        return check_read(self._read)

    @cached_property
    def _occurrences(self) -> list[Occurrence]:
        found: list[Occurrence] = []
        for file, text in self.texts.items():
            found += occurrences(file, text)
        return found

    def name_at(self, file: str, line: int, column: int) -> Occurrence | None:
        """The name of a predicate, type or rule at this place."""
        for use in self._occurrences:
            place = use.place
            ends = (place.end_line or place.line, place.end_column or place.column)
            if place.file == file and (place.line, place.column) <= (line, column) <= ends:
                return use
        return None

    def meaning(self, name: Occurrence) -> str:
        """The meaning of a name in Markdown: its declaration and sentences, and the number of its facts."""
        if name.kind is NameKind.PREDICATE:
            signature = self._signature(name)
            return "" if signature is None else self._predicate(signature)
        if name.kind is NameKind.TYPE:
            return self._type(name.name)
        rule = next((rule for rule in self._library.rules if rule.name == name.name), None)
        return "" if rule is None else statement_text(rule, self._library).sentence

    def _signature(self, name: Occurrence) -> PredicateSignature | None:
        for signature in self._library.signatures:
            if signature.name == name.name and name.arity in (None, len(signature.argument_types)):
                return signature
        return None

    def _declaration(self, signature: PredicateSignature) -> str:
        """The declaration as text: of an aggregate, what it counts as well."""
        for aggregate in self._library.aggregates:
            if aggregate.atom.indicator == signature.indicator:
                return str(aggregate)
        return signature_text(signature)

    def _users(self, indicator: str) -> int:
        """Rules that use a predicate, exceptions included."""
        users = 0
        for rule in self._library.rules:
            stated = [
                item.atom for exception in rule.exceptions for item in exception.stated if isinstance(item, Literal)
            ]
            users += any(atom.indicator == indicator for atom in (*rule.atoms, *stated))
        return users

    def _predicate(self, signature: PredicateSignature) -> str:
        lines = [f"```hapax\n{self._declaration(signature)}\n```"]
        if not signature.declared:
            lines.append("Not declared: types and sentences are guessed.")
        elif signature.templates is not None:
            forms = (signature.templates.affirmative, signature.templates.negated, signature.templates.question)
            lines += [f"- {text}" for text in forms if text]
        lines.append(f"In {counted(self._users(signature.indicator), 'rule')}.")
        if (facts := self._facts(signature.indicator)) is not None:
            lines.append(f"{counted(facts, 'fact')} in {self._database}.")
        return "\n".join(lines)

    def _facts(self, indicator: str) -> int | None:
        """Facts of the predicate in the knowledge base; None without one that can be read."""
        if self._database is None or not self._database.exists():
            return None
        try:
            with KnowledgeBase(self._database, read_only=True) as kb:
                return kb.fact_counts().get(indicator, 0)
        except HapaxError:
            return None

    def _type(self, name: str) -> str:
        above = [parent for child, parent in self._library.subtypes if child == name]
        below = [child for child, parent in self._library.subtypes if parent == name]
        lines = [f"Type **{name}**"]
        lines += [f"- is a kind of {parent}" for parent in above]
        lines += [f"- {child} is a kind of it" for child in below]
        uses = [signature.indicator for signature in self._library.signatures if name in signature.argument_types]
        if uses:
            lines.append(f"Arguments of {', '.join(uses)}.")
        return "\n".join(lines)

    def completions(self, file: str, line: int, column: int) -> list[Completion]:
        """Names that fit at this place: types inside an atom, elsewhere predicates and words of the language."""
        before = self.texts[file].split("\n")[line - 1][: column - 1]
        # The first word of an attribute's line, such as `@dom`.
        if before.lstrip().startswith("@") and " " not in before.strip():
            return [Completion(word, None) for word in ATTRIBUTES]
        # Inside the brackets of an atom.
        if before.count("(") > before.count(")"):
            return [Completion(name, NameKind.TYPE) for name in self._types()]
        found = [
            Completion(signature.name, NameKind.PREDICATE, self._declaration(signature), signature.argument_types)
            for signature in self._library.signatures
            if self._is_known(file, signature)
        ]
        # Behind more than a first word, which may become a word of the language, only predicates fit.
        if not before.strip().replace("_", "").isalnum() and before.strip():
            return found
        return [*found, *(Completion(word, None) for word in sorted((*KEYWORDS, "unless")))]

    def call_at(self, file: str, line: int, column: int) -> tuple[PredicateSignature, str, int] | None:
        """Signature and declaration of the predicate in whose brackets a place is, and the argument's number from 0."""
        before = self.texts[file].split("\n")[line - 1][: column - 1]
        name, bracket, arguments = before.rpartition("(")
        words = name.split()
        if not bracket or ")" in arguments or not words:
            return None
        signature = self._signature(Occurrence(NameKind.PREDICATE, words[-1], Place(file)))
        return None if signature is None else (signature, self._declaration(signature), arguments.count(","))

    def names_of(self, file: str) -> list[Occurrence]:
        """All names of a file, in its order."""
        return [use for use in self._occurrences if use.place.file == file]

    def _is_known(self, file: str, signature: PredicateSignature) -> bool:
        """True for a predicate that a file can name: none that stands for an exception, or has another name there."""
        if signature.indicator in self._library.excepted:
            return False
        endings = self._named_imports.get(file, {})
        elsewhere = (self._named_files | set(endings.values())) - {file}
        declared = signature.place.file
        # What is imported under a name has its ending here.
        return declared not in elsewhere or any(
            declared == imported and signature.name.endswith(ending) for ending, imported in endings.items()
        )

    def _types(self) -> list[str]:
        return sorted({use.name for use in self._occurrences if use.kind is NameKind.TYPE})

    def definition(self, name: Occurrence) -> Place | None:
        """The declaration of a predicate or subtype, or the name's first use where there is none."""
        same = self.uses(name)
        # A name without a declaration, such as a type, leads to its first use.
        return next((use.place for use in same if use.declares), same[0].place if same else None)

    def uses(self, name: Occurrence) -> list[Occurrence]:
        """All places that name the same predicate, type or rule, also with the ending of an import."""
        origin = self._origin(name)
        arities = (None, name.arity)
        return [
            use
            for use in self._occurrences
            if self._origin(use) == origin and (name.arity is None or use.arity in arities)
        ]

    def renamed(self, name: Occurrence, new: str) -> list[tuple[Occurrence, str]]:
        """All places of a name with the text that gives it a new one. Raises HapaxError if it cannot become that.

        An ending that an import gives stays where it is.
        """
        _, base, _ = self._origin(name)
        wanted = new.removesuffix(name.name.removeprefix(base)) or new
        self.check_new_name(name, wanted)
        return [(use, wanted + use.name.removeprefix(self._origin(use)[1])) for use in self.uses(name)]

    def check_new_name(self, name: Occurrence, new: str) -> None:
        """Raise HapaxError if the name cannot become the new one."""
        # Cut as the language cuts it: `eats-meat` is one word, `x'y` is two with a sign between them.
        tokens, _ = statement_tokens(new)
        words = [str(token) for token in tokens if token.type == "WORD"]
        is_name = len(words) == 1 or (words and name.kind is NameKind.TYPE)
        if not is_name or " ".join(words) != new or "not" in words:
            raise HapaxError(f"{new!r} cannot be the name of a {name.kind}. Choose letters, digits and _.")
        kind, _, scope = self._origin(name)
        arities = (None, name.arity)
        taken = ((self._origin(use), use.arity) for use in self._occurrences)
        if any(origin == (kind, new, scope) and (None in arities or arity in arities) for origin, arity in taken):
            raise HapaxError(f"The {name.kind} {new} exists already. Choose another name.")
        if name.kind is NameKind.PREDICATE and new in KEYWORDS:
            raise HapaxError(f"{new} is a word of the language. Choose another name.")

    def outline(self, file: str) -> list[OutlineEntry]:
        """The declarations and rules of a file, in its order."""
        entries = [
            OutlineEntry(use.name, use.kind, self._detail(use), use.place)
            for use in self._occurrences
            if use.declares and use.place.file == file and use.kind is not NameKind.RULE
        ]
        for rule in self._library.rules:
            if rule.place.file == file:
                entries.append(OutlineEntry(rule.name, NameKind.RULE, str(rule.conclusion), rule.place))
        return sorted(entries, key=lambda entry: (entry.place.line, entry.place.column))

    def _detail(self, name: Occurrence) -> str:
        signature = self._signature(name) if name.kind is NameKind.PREDICATE else None
        return "" if signature is None else f"({', '.join(signature.argument_types)})"
