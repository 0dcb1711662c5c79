"""The command `lsp`: the checker as a language server for editors."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hapax.commands.shared.common_options import with_rules
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

    from hapax.api.rule_documents import RuleDocuments
    from hapax.grammar.errors import Diagnostic, Place, TextRepair
    from hapax.grammar.parsing.occurrences import Occurrence

SETTLED = 0.15
"""Seconds without a change after which a text is checked."""

TOKEN_TYPES = {"predicate": "function", "type": "class", "rule": "method"}
"""The protocol's token types by kind of name."""


@click.command("lsp")
@with_rules
@click.option("--db", "database", envvar="HAPAX_DB", help="Knowledge base whose facts are counted.")
def serve_editor(paths: tuple[Path, ...], database: str | None) -> None:
    """Serve editors over stdin and stdout by the Language Server Protocol: faults, meanings, completion, new names.

    A file is checked with the other files of --rules if it is one of them, otherwise alone, as `hapax check FILE` does.

    \b
    hapax rules lsp
    hapax rules lsp --rules rules --db hapax.db
    """
    if missing := missing_of("editor"):
        raise HapaxError(missing)
    editor_server(paths, database).start_io()


def editor_server(paths: tuple[Path, ...] = (), database: str | None = None) -> LanguageServer:
    """The server, with all its features."""
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

    server = LanguageServer("hapax", version("hapax-kb"))
    service = _EditorService(server, paths, None if database is None else Path(database))
    for feature, handler in (
        (types.TEXT_DOCUMENT_DID_OPEN, service.opened),
        (types.TEXT_DOCUMENT_DID_CHANGE, service.changed),
        (types.TEXT_DOCUMENT_DID_CLOSE, service.closed),
        (types.TEXT_DOCUMENT_HOVER, service.hover),
        (types.TEXT_DOCUMENT_DEFINITION, service.definition),
        (types.TEXT_DOCUMENT_REFERENCES, service.references),
        (types.TEXT_DOCUMENT_RENAME, service.rename),
        (types.TEXT_DOCUMENT_FORMATTING, service.formatting),
        (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, service.outline),
    ):
        server.feature(feature)(partial(handler))  # pygls notes the feature on it, which a method does not allow
    completion = types.CompletionOptions(trigger_characters=["(", ",", "@"])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, completion)(partial(service.completion))
    help_options = types.SignatureHelpOptions(trigger_characters=["(", ","])
    server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, help_options)(partial(service.signature))
    legend = types.SemanticTokensLegend(list(TOKEN_TYPES.values()), [])
    server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)(partial(service.tokens))
    fixes = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, fixes)(partial(service.fixes))
    return server


class _EditorService:
    """Translates between the protocol and `RuleDocuments`: its lines and columns count from 0, in UTF-16 units."""

    def __init__(self, server: LanguageServer, paths: tuple[Path, ...], database: Path | None) -> None:
        from lsprotocol import types

        self._server, self._paths, self._database = server, paths, database
        self._types = types

    # Documents

    def _documents(self, uri: str) -> tuple[str, RuleDocuments]:
        """The file's name, and the texts to which it belongs: those of open documents as they are on the screen."""
        from hapax.api.rule_documents import RuleDocuments, files_with

        name = self._file(uri)
        texts = {file: self._text(self._uri(file)) for file in files_with(name, self._paths)}
        return name, RuleDocuments(texts, self._database)

    def _text(self, uri: str) -> str:
        try:
            source = self._server.workspace.get_text_document(uri).source
        except (OSError, UnicodeDecodeError):
            return ""
        # Lines as the parser counts them.
        return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")

    @staticmethod
    def _file(uri: str) -> str:
        from pygls.uris import to_fs_path

        path = to_fs_path(uri)
        # A document that was never saved has a URI without a path.
        return str(Path(path).resolve()) if uri.startswith("file:") and path else uri

    @staticmethod
    def _uri(file: str) -> str:
        from pygls.uris import from_fs_path

        # `untitled:Untitled-1`, of a document that was never saved, is a URI already.
        return file if ":" in file.split("/", maxsplit=1)[0] else from_fs_path(file) or file

    # Places

    def _range(self, place: Place, length: int | None = None) -> types.Range:
        """The range of a place; of `length` characters, or to the end of the word where the place has no end."""
        start = self._types.Position(place.line - 1, place.column - 1)
        lines = self._text(self._uri(place.file)).split("\n")
        if length is not None:
            end = self._types.Position(place.line - 1, place.column - 1 + length)
        elif place.end_line is not None and place.end_column is not None:
            end = self._types.Position(place.end_line - 1, place.end_column - 1)
        else:
            # The text may have become shorter since the place was found.
            line = lines[place.line - 1] if place.line <= len(lines) else ""
            words = line[place.column - 1 :].split(maxsplit=1)
            end = self._types.Position(place.line - 1, place.column - 1 + (len(words[0]) if words else 1))
        # From characters to the units that the client asked for, mostly those of UTF-16.
        return self._server.workspace.position_codec.range_to_client_units(lines, self._types.Range(start, end))

    def _position(self, uri: str, position: types.Position) -> tuple[int, int]:
        """Line and column from 1, in characters."""
        lines = self._text(uri).split("\n")
        inside = self._server.workspace.position_codec.position_from_client_units(lines, position)
        return inside.line + 1, inside.character + 1

    def _location(self, place: Place) -> types.Location:
        return self._types.Location(self._uri(place.file), self._range(place))

    def _name_at(self, params: Any) -> tuple[RuleDocuments, Occurrence | None]:
        uri = params.text_document.uri
        name, documents = self._documents(uri)
        return documents, documents.name_at(name, *self._position(uri, params.position))

    # Faults

    async def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        await self._check(params.text_document.uri)

    async def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Check the text when nobody has typed for a moment."""
        import asyncio

        uri = params.text_document.uri
        await asyncio.sleep(SETTLED)
        open_now = self._server.workspace.text_documents.get(uri)
        # Otherwise the text has changed meanwhile, and a later call checks it.
        if open_now is not None and open_now.version == params.text_document.version:
            await self._check(uri)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        # The editor takes the faults of a closed document off the screen.
        self._publish(params.text_document.uri, [])

    async def _check(self, uri: str) -> None:
        """Publish the faults of the document, and of the open documents to which it belongs."""
        import asyncio

        name, documents = self._documents(uri)
        # In a thread, so that other requests are answered meanwhile.
        faults = await asyncio.to_thread(lambda: documents.diagnostics)
        opened = set(self._server.workspace.text_documents)
        for file in documents.texts:
            if file == name or self._uri(file) in opened:
                here = [self._diagnostic(fault) for fault in faults if fault.place.file == file]
                # The client may spell the URI of its document in another way than we would.
                self._publish(uri if file == name else self._uri(file), here)

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(self._types.PublishDiagnosticsParams(uri, diagnostics))

    def _diagnostic(self, diagnostic: Diagnostic) -> types.Diagnostic:
        severity = {
            "error": self._types.DiagnosticSeverity.Error,
            "warning": self._types.DiagnosticSeverity.Warning,
            "note": self._types.DiagnosticSeverity.Information,
        }[diagnostic.severity]
        related = [
            self._types.DiagnosticRelatedInformation(self._location(place), "see also") for place in diagnostic.related
        ]
        return self._types.Diagnostic(
            self._range(diagnostic.place),
            diagnostic.text,
            severity,
            diagnostic.code,
            source="hapax",
            related_information=related or None,
        )

    def fixes(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """The fixes of `check --fix` for faults in the range."""
        uri = params.text_document.uri
        name, documents = self._documents(uri)
        first, last = params.range.start.line + 1, params.range.end.line + 1
        actions = []
        for diagnostic in documents.diagnostics:
            place = diagnostic.place
            if diagnostic.fix and place.file == name and first <= place.line <= last:
                replacements = ", ".join(f"{repair.old} by {repair.new}" for repair in diagnostic.fix)
                actions.append(
                    self._types.CodeAction(
                        f"Replace {replacements}",
                        self._types.CodeActionKind.QuickFix,
                        [self._diagnostic(diagnostic)],
                        edit=self._edit(diagnostic.fix),
                        # A single remedy, which the editor may apply without asking.
                        is_preferred=True,
                    )
                )
        return actions

    def _edit(self, repairs: Iterable[TextRepair]) -> types.WorkspaceEdit:
        changes: dict[str, list[types.TextEdit]] = {}
        for repair in repairs:
            edit = self._types.TextEdit(self._range(repair.place, len(repair.old)), repair.new)
            changes.setdefault(self._uri(repair.place.file), []).append(edit)
        return self._types.WorkspaceEdit(changes)

    # Names

    def hover(self, params: types.HoverParams) -> types.Hover | None:
        documents, name = self._name_at(params)
        text = "" if name is None else documents.meaning(name)
        if name is None or not text:
            return None
        return self._types.Hover(
            self._types.MarkupContent(self._types.MarkupKind.Markdown, text), self._range(name.place)
        )

    def definition(self, params: types.DefinitionParams) -> types.Location | None:
        documents, name = self._name_at(params)
        place = None if name is None else documents.definition(name)
        return None if place is None else self._location(place)

    def references(self, params: types.ReferenceParams) -> list[types.Location]:
        documents, name = self._name_at(params)
        return [] if name is None else [self._location(use.place) for use in documents.uses(name)]

    def rename(self, params: types.RenameParams) -> types.WorkspaceEdit | None:
        from pygls.exceptions import JsonRpcInvalidParams

        documents, name = self._name_at(params)
        if name is None:
            return None
        try:
            renamed = documents.renamed(name, params.new_name)
        except HapaxError as fault:
            # The editor shows the message to the person who renames.
            raise JsonRpcInvalidParams(str(fault)) from None
        changes: dict[str, list[types.TextEdit]] = {}
        for use, text in renamed:
            edit = self._types.TextEdit(self._range(use.place), text)
            changes.setdefault(self._uri(use.place.file), []).append(edit)
        return self._types.WorkspaceEdit(changes)

    def completion(self, params: types.CompletionParams) -> types.CompletionList:
        """Predicates come with their arguments to fill in where the editor takes snippets."""
        uri = params.text_document.uri
        name, documents = self._documents(uri)
        kinds = {
            "predicate": self._types.CompletionItemKind.Function,
            "type": self._types.CompletionItemKind.Class,
        }
        items = []
        for offer in documents.completions(name, *self._position(uri, params.position)):
            kind = kinds.get(offer.kind or "", self._types.CompletionItemKind.Keyword)
            item = self._types.CompletionItem(offer.name, kind=kind, detail=offer.detail or None)
            if offer.arguments:
                # `flows_into(${1:River}, ${2:River})`.
                slots = ", ".join(f"${{{number}:{text}}}" for number, text in enumerate(offer.arguments, 1))
                item.insert_text = f"{offer.name}({slots})"
                item.insert_text_format = self._types.InsertTextFormat.Snippet
            items.append(item)
        # False: the list is complete, and the editor narrows it down itself.
        return self._types.CompletionList(False, items)

    def signature(self, params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        """The declaration of the predicate whose arguments are typed, with the present one."""
        uri = params.text_document.uri
        name, documents = self._documents(uri)
        found = documents.call_at(name, *self._position(uri, params.position))
        if found is None:
            return None
        signature, declaration, number = found
        parameters = [self._types.ParameterInformation(text) for text in signature.argument_types]
        label = f"{signature.name}({', '.join(signature.argument_types)})"
        shown = self._types.SignatureInformation(label, declaration, parameters)
        return self._types.SignatureHelp([shown], 0, number)

    def tokens(self, params: types.SemanticTokensParams) -> types.SemanticTokens:
        """Kinds of the names of a document: each by its distance to the one before, as the protocol wants it."""
        name, documents = self._documents(params.text_document.uri)
        kinds, data, line, column = list(TOKEN_TYPES), [], 0, 0
        for use in documents.names_of(name):
            start, end = (found := self._range(use.place)).start, found.end
            column = column if start.line == line else 0
            data += [start.line - line, start.character - column, end.character - start.character]
            data += [kinds.index(use.kind), 0]
            line, column = start.line, start.character
        return self._types.SemanticTokens(data)

    # Files

    def formatting(self, params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        """The layout of `hapax rules fmt`; nothing for a text with faults, which are shown already."""
        from hapax import format_rules

        text = self._text(params.text_document.uri)
        try:
            formatted = format_rules(text)
        except HapaxError:
            return None
        if formatted == text:
            return []
        lines = text.split("\n")
        # Everything from the first to behind the last character.
        whole = self._types.Range(self._types.Position(0, 0), self._types.Position(len(lines) - 1, len(lines[-1])))
        units = self._server.workspace.position_codec.range_to_client_units(lines, whole)
        return [self._types.TextEdit(units, formatted)]

    def outline(self, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        name, documents = self._documents(params.text_document.uri)
        kinds = {
            "predicate": self._types.SymbolKind.Function,
            "type": self._types.SymbolKind.Class,
            "rule": self._types.SymbolKind.Method,
        }
        symbols = []
        for entry in documents.outline(name):
            where = self._range(entry.place)
            symbols.append(
                # The protocol asks for the range of the entry and of its name; a place has one range.
                self._types.DocumentSymbol(entry.name, kinds[entry.kind], where, where, entry.detail or None)
            )
        return symbols
