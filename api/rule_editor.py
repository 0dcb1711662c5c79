"""The language server of `hapax rules lsp`: faults, meanings, completions, places and new names in rule files.

Lines and columns count from 1 in `RuleFiles`; those of the protocol from 0, in units of UTF-16.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path

from hapax.grammar.checking.library_checks import check_read
from hapax.grammar.errors import Diagnostic, HapaxError, Place, Severity
from hapax.grammar.parsing.declarations import PredicateSignature
from hapax.grammar.parsing.parser import ReadRules, read_rules, read_texts
from hapax.grammar.parsing.statements import KEYWORDS, SourceToken, statement_tokens
from hapax.grammar.rules import Library
from hapax.grammar.terms import Literal
from hapax.grammar.writing.printing import signature_text
from hapax.grammar.writing.texts import is_variable_name
from hapax.grammar.writing.verbalize import statement_text
from hapax.grammar.writing.words import counted
from hapax.kb.store import KnowledgeBase

SETTLED = 0.15
"""Seconds without a change after which a text is checked."""

DECLARING = frozenset(("oracle", "functional", "given", "computed", "aggregate"))
"""Words that begin the declaration of a predicate."""

_OF_VALUES = frozenset(("fact", "@example"))
"""Beginnings of statements whose arguments are values, not types."""


class NameKind(StrEnum):
    """The kinds of names in rules."""

    PREDICATE = "predicate"
    TYPE = "type"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at its place in a text. `arity`: of a predicate, None where the line does not tell it.

    `declares`: the statement declares the predicate or the subtype, or names the rule.
    """

    kind: NameKind
    name: str
    place: Place
    arity: int | None = None
    declares: bool = False


def occurrences(file: str, text: str) -> Iterator[Occurrence]:
    """All names of predicates, types and rules of a text, in its order; broken statements included."""
    for tokens in statement_tokens(text)[1]:
        first, kinds = str(tokens[0]), [token.type for token in tokens]
        if first == "@name":
            for token in tokens[1:2]:
                yield Occurrence(NameKind.RULE, str(token).strip('"'), _place(file, [token]), declares=True)
        elif first == "opposite" and kinds[1:2] == ["WORD"]:
            for token in tokens[1:3]:
                yield Occurrence(NameKind.PREDICATE, str(token), _place(file, [token]))
        elif first in ("type", "disjoint") and kinds[1:2] == ["WORD"]:
            # A type ends at a sign or at the end of the statement; the first of a subtype is declared there.
            for number, words in enumerate(_split(tokens[1:], lambda token: token.type != "WORD")):
                yield from _type(file, words, declares=first == "type" and number == 0)
        elif kinds[2:4] == ["SLASH", "NUMBER"]:  # symmetric p/2
            arity = int(tokens[3]) if tokens[3].isdecimal() else None
            yield Occurrence(NameKind.PREDICATE, str(tokens[1]), _place(file, [tokens[1]]), arity)
        elif not first.startswith("@") or first in _OF_VALUES:
            yield from _atoms(file, tokens, kinds)


def _atoms(file: str, tokens: Sequence[SourceToken], kinds: Sequence[str]) -> Iterator[Occurrence]:
    """The predicates of a statement, and the types of their arguments."""
    first = str(tokens[0])
    declares = first in DECLARING and kinds[1:2] == ["WORD"]
    for index, name in enumerate(tokens):
        is_function = first == "aggregate" and index > 0 and kinds[index - 1] == "COMPARE"
        if kinds[index : index + 2] == ["WORD", "LPAR"] and not is_function:
            # A list that is left open ends before the name of the next predicate.
            end = next((at for at in range(index + 2, len(kinds)) if kinds[at] in ("LPAR", "RPAR")), len(kinds))
            inside = tokens[index + 2 : end - (kinds[end : end + 1] == ["LPAR"])]
            arguments = _split(inside, lambda token: token.type == "COMMA")
            yield Occurrence(NameKind.PREDICATE, str(name), _place(file, [name]), len(arguments), declares)
            for words in arguments if first not in _OF_VALUES else ():
                # `Food Allergen` in a declaration is all type; elsewhere the last word is the variable.
                is_named = len(words) > 1 and is_variable_name(str(words[-1]))
                yield from _type(file, words if declares and not is_named else words[:-1])
            declares = False


def _type(file: str, words: Sequence[SourceToken], declares: bool = False) -> Iterator[Occurrence]:
    if words and all(word.type == "WORD" for word in words):
        yield Occurrence(NameKind.TYPE, " ".join(map(str, words)), _place(file, words), declares=declares)


def _place(file: str, words: Sequence[SourceToken]) -> Place:
    first, last = words[0], words[-1]
    return Place(file, first.line or 1, first.column or 1, last.end_line, last.end_column)


def _split(tokens: Sequence[SourceToken], ends: Callable[[SourceToken], bool]) -> list[list[SourceToken]]:
    """The tokens between those that end a part."""
    parts: list[list[SourceToken]] = [[]]
    for token in tokens:
        if ends(token):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


ATTRIBUTES = ("@name", "@domain", "@principle", "@polarity", "@generic", "@most", "@withdrawn", "@example")

TOKEN_TYPES = {NameKind.PREDICATE: "function", NameKind.TYPE: "class", NameKind.RULE: "method"}
"""The protocol's token types by kind of name."""

SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.NOTE: types.DiagnosticSeverity.Information,
}


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


@dataclass(frozen=True)
class RuleFiles:
    """A rule file, and the texts of the files that belong together with it, by file name.

    `database`: a knowledge base whose facts are counted. The texts may be faulty; what can be read is used.
    """

    file: str
    texts: Mapping[str, str]
    database: Path | None = None

    @cached_property
    def _read(self) -> ReadRules:
        return read_texts(self.texts.items(), import_files=True)

    @property
    def library(self) -> Library:
        """The rules that could be read."""
        return self._read.library

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The faults that `hapax check` finds in these files."""
        return check_read(self._read)

    @cached_property
    def names(self) -> list[Occurrence]:
        """All names of all files, in their order."""
        return [use for file, text in self.texts.items() for use in occurrences(file, text)]

    @property
    def own_names(self) -> list[Occurrence]:
        """The names of the file."""
        return [use for use in self.names if use.place.file == self.file]

    def before(self, line: int, column: int) -> str:
        """The part of a line before a place."""
        return self.texts[self.file].split("\n")[line - 1][: column - 1]

    # Imports under a name

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
            named = (known for known in self.names if (known.place.file, known.kind) == (imported, use.kind))
            if base != name and any(known.name == base for known in named):
                return self._origin(Occurrence(use.kind, base, Place(imported), use.arity))
        return use.kind, name, file if file in self._named_files else ""

    def knows(self, signature: PredicateSignature) -> bool:
        """True for a predicate that the file can name: none that stands for an exception, or has another name there."""
        if signature.indicator in self.library.excepted:
            return False
        endings = self._named_imports.get(self.file, {})
        declared = signature.place.file
        # What is imported under a name has its ending here.
        return declared not in (self._named_files | set(endings.values())) - {self.file} or any(
            declared == imported and signature.name.endswith(ending) for ending, imported in endings.items()
        )

    # Names

    def name_at(self, line: int, column: int) -> Occurrence | None:
        """The name of a predicate, type or rule at this place."""
        for use in self.own_names:
            place = use.place
            ends = (place.end_line or place.line, place.end_column or place.column)
            if (place.line, place.column) <= (line, column) <= ends:
                return use
        return None

    def signature(self, name: str, arity: int | None = None) -> PredicateSignature | None:
        """The predicate of this name, and of so many arguments if that is known."""
        for signature in self.library.signatures:
            if signature.name == name and arity in (None, len(signature.argument_types)):
                return signature
        return None

    def declaration(self, signature: PredicateSignature) -> str:
        """The declaration as text: of an aggregate, what it counts as well."""
        for aggregate in self.library.aggregates:
            if aggregate.atom.indicator == signature.indicator:
                return str(aggregate)
        return signature_text(signature)

    def meaning(self, name: Occurrence) -> str:
        """The meaning of a name in Markdown: its declaration and sentences, and the number of its facts."""
        if name.kind is NameKind.PREDICATE:
            signature = self.signature(name.name, name.arity)
            return "" if signature is None else "\n".join(self._predicate(signature))
        if name.kind is NameKind.TYPE:
            return "\n".join(self._type(name.name))
        rule = next((rule for rule in self.library.rules if rule.name == name.name), None)
        return "" if rule is None else statement_text(rule, self.library).sentence

    def _predicate(self, signature: PredicateSignature) -> Iterable[str]:
        yield f"```hapax\n{self.declaration(signature)}\n```"
        templates = signature.templates
        if not signature.declared:
            yield "Not declared: types and sentences are guessed."
        elif templates is not None:
            yield from (f"- {text}" for text in (templates.affirmative, templates.negated, templates.question) if text)
        users = 0
        for rule in self.library.rules:
            stated = (item for exception in rule.exceptions for item in exception.stated)
            atoms = (*rule.atoms, *(item.atom for item in stated if isinstance(item, Literal)))
            users += any(atom.indicator == signature.indicator for atom in atoms)
        yield f"In {counted(users, 'rule')}."
        with suppress(HapaxError):  # it cannot be read, and `hapax check --db` says why
            if self.database is not None and self.database.exists():
                with KnowledgeBase(self.database, read_only=True) as kb:
                    facts = kb.fact_counts().get(signature.indicator, 0)
                yield f"{counted(facts, 'fact')} in {self.database}."

    def _type(self, name: str) -> Iterable[str]:
        yield f"Type **{name}**"
        yield from (f"- is a kind of {parent}" for child, parent in self.library.subtypes if child == name)
        yield from (f"- {child} is a kind of it" for child, parent in self.library.subtypes if parent == name)
        uses = [signature.indicator for signature in self.library.signatures if name in signature.argument_types]
        if uses:
            yield f"Arguments of {', '.join(uses)}."

    def uses(self, name: Occurrence) -> list[Occurrence]:
        """All places that name the same predicate, type or rule, also with the ending of an import."""
        origin, arities = self._origin(name), (None, name.arity)
        same = [use for use in self.names if self._origin(use) == origin]
        return [use for use in same if name.arity is None or use.arity in arities]

    def renamed(self, name: Occurrence, new: str) -> list[tuple[Place, str]]:
        """All places of a name with the text that gives it a new one. Raises HapaxError if it cannot become that.

        An ending that an import gives stays where it is.
        """
        kind, base, scope = self._origin(name)
        wanted = new.removesuffix(name.name.removeprefix(base)) or new
        # Cut as the language cuts it: `eats-meat` is one word, `x'y` is two with a sign between them.
        words = [str(token) for token in statement_tokens(wanted)[0] if token.type == "WORD"]
        is_name = len(words) == 1 or (words and kind is NameKind.TYPE)
        if not is_name or " ".join(words) != wanted or "not" in words:
            raise HapaxError(f"{wanted!r} cannot be the name of a {kind}. Choose letters, digits and _.")
        for use in self.names:
            if self._origin(use) == (kind, wanted, scope) and (use.arity is None or name.arity in (None, use.arity)):
                raise HapaxError(f"The {kind} {wanted} exists already. Choose another name.")
        if kind is NameKind.PREDICATE and wanted in KEYWORDS:
            raise HapaxError(f"{wanted} is a word of the language. Choose another name.")
        return [(use.place, wanted + use.name.removeprefix(self._origin(use)[1])) for use in self.uses(name)]


class RuleEditor:
    """The server, and its answers to an editor. `paths`: rule files and folders that belong together."""

    def __init__(self, paths: Iterable[str | Path] = (), database: Path | None = None) -> None:
        self.server = LanguageServer("hapax", version("hapax-kb"))
        self._paths, self._database = tuple(paths), database
        completing = types.CompletionOptions(trigger_characters=["(", ",", "@"])
        signing = types.SignatureHelpOptions(trigger_characters=["(", ","])
        legend = types.SemanticTokensLegend(list(TOKEN_TYPES.values()), [])
        answers: dict[str, tuple[Callable[..., Any], object]] = {
            types.TEXT_DOCUMENT_DID_OPEN: (self.opened, None),
            types.TEXT_DOCUMENT_DID_CHANGE: (self.changed, None),
            types.TEXT_DOCUMENT_DID_CLOSE: (self.closed, None),
            types.TEXT_DOCUMENT_HOVER: (partial(self._at_name, self.hover), None),
            types.TEXT_DOCUMENT_DEFINITION: (partial(self._at_name, self.definition), None),
            types.TEXT_DOCUMENT_REFERENCES: (partial(self._at_name, self.references), None),
            types.TEXT_DOCUMENT_RENAME: (partial(self._at_name, self.rename), None),
            types.TEXT_DOCUMENT_COMPLETION: (self.completion, completing),
            types.TEXT_DOCUMENT_SIGNATURE_HELP: (self.signature, signing),
            types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: (self.tokens, legend),
            types.TEXT_DOCUMENT_CODE_ACTION: (self.fixes, types.CodeActionOptions([types.CodeActionKind.QuickFix])),
        }
        for feature, (answer, options) in answers.items():
            self.server.feature(feature, options)(partial(answer))  # pygls notes the feature on it, as on no method

    # Documents and places

    def _files(self, uri: str) -> RuleFiles:
        """The document with the files to which it belongs: texts of open documents are as they are on the screen."""
        path = to_fs_path(uri)
        # A document that was never saved has a URI without a path.
        name = str(Path(path).resolve()) if uri.startswith("file:") and path else uri
        texts = {file: self._text(self._uri(file)) for file in files_with(name, self._paths)}
        return RuleFiles(name, texts, self._database)

    def _text(self, uri: str) -> str:
        try:
            source = self.server.workspace.get_text_document(uri).source
        except (OSError, UnicodeDecodeError):
            return ""
        # Lines as the parser counts them.
        return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")

    @staticmethod
    def _uri(file: str) -> str:
        # `untitled:Untitled-1`, of a document that was never saved, is a URI already.
        return file if ":" in file.split("/", maxsplit=1)[0] else from_fs_path(file) or file

    def _range(self, place: Place, length: int = 0) -> types.Range:
        """The range of a place; of `length` characters, or to the end of the word where the place has no end."""
        lines = self._text(self._uri(place.file)).split("\n")
        start = types.Position(place.line - 1, place.column - 1)
        end = types.Position(place.line - 1, place.column - 1 + length)
        if not length and place.end_line is not None and place.end_column is not None:
            end = types.Position(place.end_line - 1, place.end_column - 1)
        elif not length:
            # The text may have become shorter since the place was found.
            line = lines[place.line - 1] if place.line <= len(lines) else ""
            word = next(iter(line[place.column - 1 :].split(maxsplit=1)), "")
            end = types.Position(place.line - 1, place.column - 1 + (len(word) or 1))
        # From characters to the units that the client asked for, mostly those of UTF-16.
        return self.server.workspace.position_codec.range_to_client_units(lines, types.Range(start, end))

    def _location(self, place: Place) -> types.Location:
        return types.Location(self._uri(place.file), self._range(place))

    def _at(self, params: Any) -> tuple[RuleFiles, int, int]:
        """The files of a position, and its line and column."""
        uri = params.text_document.uri
        lines = self._text(uri).split("\n")
        inside = self.server.workspace.position_codec.position_from_client_units(lines, params.position)
        return self._files(uri), inside.line + 1, inside.character + 1

    def _at_name(self, answer: Callable[[RuleFiles, Occurrence, Any], Any], params: Any) -> Any:
        """An answer about the name at a position; None without one."""
        files, line, column = self._at(params)
        name = files.name_at(line, column)
        return None if name is None else answer(files, name, params)

    def _edit(self, texts: Iterable[tuple[Place, int, str]]) -> types.WorkspaceEdit:
        """Texts in the place of others, of which the length is known or that are names."""
        changes: dict[str, list[types.TextEdit]] = {}
        for place, length, text in texts:
            edit = types.TextEdit(self._range(place, length), text)
            changes.setdefault(self._uri(place.file), []).append(edit)
        return types.WorkspaceEdit(changes)

    # Faults

    async def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        await self._check(params.text_document.uri)

    async def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Check the text when nobody has typed for a moment."""
        uri = params.text_document.uri
        await asyncio.sleep(SETTLED)
        open_now = self.server.workspace.text_documents.get(uri)
        # Otherwise the text has changed meanwhile, and a later call checks it.
        if open_now is not None and open_now.version == params.text_document.version:
            await self._check(uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        # The editor takes the faults of a closed document off the screen.
        self._publish(params.text_document.uri, [])

    async def _check(self, uri: str) -> None:
        """Publish the faults of the document, and of the open documents to which it belongs."""
        files = self._files(uri)
        # In a thread, so that other requests are answered meanwhile.
        faults = await asyncio.to_thread(lambda: files.diagnostics)
        opened = set(self.server.workspace.text_documents)
        for file in files.texts:
            if file == files.file or self._uri(file) in opened:
                here = [self._diagnostic(fault) for fault in faults if fault.place.file == file]
                # The client may spell the URI of its document in another way than we would.
                self._publish(uri if file == files.file else self._uri(file), here)

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))

    def _diagnostic(self, fault: Diagnostic) -> types.Diagnostic:
        related = [types.DiagnosticRelatedInformation(self._location(place), "see also") for place in fault.related]
        return types.Diagnostic(
            self._range(fault.place),
            fault.text,
            SEVERITIES[fault.severity],
            fault.code,
            source="hapax",
            related_information=related or None,
        )

    def fixes(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The fixes of `check --fix` for faults in the range."""
        files, actions = self._files(params.text_document.uri), []
        lines = range(params.range.start.line + 1, params.range.end.line + 2)
        for fault in files.diagnostics:
            fix = fault.fix
            if fix is not None and fault.place.file == files.file and fault.place.line in lines:
                action = types.CodeAction(
                    f"Replace {fix.old} by {fix.new}" if fix.new else f"Remove {fix.old!a}",
                    types.CodeActionKind.QuickFix,
                    [self._diagnostic(fault)],
                    edit=self._edit((place, len(fix.old), fix.new) for place in fix.places),
                    # A single remedy, which the editor may apply without asking.
                    is_preferred=True,
                )
                actions.append(action)
        return actions

    # Names

    def hover(self, files: RuleFiles, name: Occurrence, _: types.HoverParams) -> types.Hover | None:
        text = types.MarkupContent(types.MarkupKind.Markdown, files.meaning(name))
        return types.Hover(text, self._range(name.place)) if text.value else None

    def definition(self, files: RuleFiles, name: Occurrence, _: types.DefinitionParams) -> types.Location:
        """The declaration of a predicate or subtype, or the name's first use where there is none."""
        uses = files.uses(name)
        return self._location(next((use.place for use in uses if use.declares), uses[0].place))

    def references(self, files: RuleFiles, name: Occurrence, _: types.ReferenceParams) -> list[types.Location]:
        return [self._location(use.place) for use in files.uses(name)]

    def rename(self, files: RuleFiles, name: Occurrence, params: types.RenameParams) -> types.WorkspaceEdit:
        try:
            return self._edit((place, 0, text) for place, text in files.renamed(name, params.new_name))
        except HapaxError as fault:
            # The editor shows the message to the person who renames.
            raise JsonRpcInvalidParams(str(fault)) from None

    def completion(self, params: types.CompletionParams) -> types.CompletionList:
        """Names that fit: types inside an atom, elsewhere predicates with their arguments to fill in, and keywords."""
        files, line, column = self._at(params)
        before = files.before(line, column)
        words, kind = sorted((*KEYWORDS, "unless")), types.CompletionItemKind.Keyword
        predicates: list[types.CompletionItem] = []
        # The first word of an attribute's line, such as `@dom`.
        if before.lstrip().startswith("@") and " " not in before.strip():
            words = list(ATTRIBUTES)
        elif before.count("(") > before.count(")"):
            words, kind = (
                sorted({use.name for use in files.names if use.kind is NameKind.TYPE}),
                types.CompletionItemKind.Class,
            )
        else:
            predicates = [_predicate_item(files, known) for known in files.library.signatures if files.knows(known)]
            # Behind more than a first word, which may become a word of the language, only predicates fit.
            if not before.strip().replace("_", "").isalnum() and before.strip():
                words = []
        # False: the list is complete, and the editor narrows it down itself.
        return types.CompletionList(False, [*predicates, *(types.CompletionItem(word, kind=kind) for word in words)])

    def signature(self, params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        """The declaration of the predicate whose arguments are typed, with the present one."""
        files, line, column = self._at(params)
        name, bracket, arguments = files.before(line, column).rpartition("(")
        words = name.split()
        signature = files.signature(words[-1]) if bracket and ")" not in arguments and words else None
        if signature is None:
            return None
        parameters = [types.ParameterInformation(text) for text in signature.argument_types]
        label = f"{signature.name}({', '.join(signature.argument_types)})"
        shown = types.SignatureInformation(label, files.declaration(signature), parameters)
        return types.SignatureHelp([shown], 0, arguments.count(","))

    def tokens(self, params: types.SemanticTokensParams) -> types.SemanticTokens:
        """Kinds of the names of a document: each by its distance to the one before, as the protocol wants it."""
        kinds, data, line, column = list(TOKEN_TYPES), [], 0, 0
        for use in self._files(params.text_document.uri).own_names:
            place = self._range(use.place)
            down, right = place.start.line - line, place.start.character
            data += [down, right if down else right - column, place.end.character - right, kinds.index(use.kind), 0]
            line, column = place.start.line, right
        return types.SemanticTokens(data)


def _predicate_item(files: RuleFiles, signature: PredicateSignature) -> types.CompletionItem:
    """A predicate with its arguments to fill in, such as `flows_into(${1:River}, ${2:River})`."""
    slots = ", ".join(f"${{{number}:{text}}}" for number, text in enumerate(signature.argument_types, 1))
    return types.CompletionItem(
        signature.name,
        kind=types.CompletionItemKind.Function,
        detail=files.declaration(signature),
        insert_text=f"{signature.name}({slots})" if slots else None,
        insert_text_format=types.InsertTextFormat.Snippet if slots else None,
    )
