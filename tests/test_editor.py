"""`hapax lsp`: an editor meets the checker through the client of the protocol's own library."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from hapax.api.rule_documents import RuleDocuments
from hapax.grammar.errors import HapaxError, Severity
from hapax.grammar.parser import KEYWORDS

TEXT = """\
type Cheese < Food
oracle is_made_from(Cheese, Milk): "[1] is made from [2]" / "[1] is not made from [2]" / "is [1] made from [2]?"
given keeps(Farmer, Milk)

@name sells
keeps(Farmer X, Milk A) & is_made_from(Cheese B, Milk A) -> can_sell(Farmer X, Cheese B)
"""
SECONDS = 60
EXTENSION = Path(__file__).parent.parent / "editors" / "vscode"


class Editor:
    """A client that has opened one document, and what the server published about it."""

    def __init__(self, client: LanguageClient, path: Path) -> None:
        self.client, self.uri, self._version = client, path.as_uri(), 1
        self.document = types.TextDocumentIdentifier(self.uri)
        self.published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self.published.put_nowait))

    async def open(self, text: str) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(self.uri, "hapax", self._version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.faults()

    async def type(self, text: str) -> list[types.Diagnostic]:
        """Replace the whole text."""
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(self._version, self.uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))
        return await self.faults()

    async def faults(self) -> list[types.Diagnostic]:
        return list((await asyncio.wait_for(self.published.get(), SECONDS)).diagnostics)


def edit(path: Path, act: Callable[[Editor], Awaitable[Any]], *options: str) -> Any:
    """Start `hapax lsp` with the options, let an editor act, and end the server as editors do."""

    async def run() -> Any:
        client = LanguageClient("editor", "1")
        await client.start_io(sys.executable, "-m", "hapax.cli", "lsp", *options)
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        try:
            return await act(Editor(client, path))
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cheese.rules"
    path.write_text(TEXT, "utf-8")
    return path


def place(text: str, word: str) -> types.Position:
    """The position of the word's second character."""
    before = text[: text.index(word)]
    return types.Position(before.count("\n"), len(before.rpartition("\n")[2]) + 1)


def test_faults_come_as_the_user_types_and_go_when_they_are_mended(path: Path) -> None:
    """Each change publishes the faults of the text on the screen, with code, severity and the range at fault."""

    async def act(editor: Editor) -> Any:
        first = await editor.open(TEXT)
        broken = await editor.type(TEXT.replace("given keeps", "givn keeps"))
        mended = await editor.type(TEXT)
        return first, broken, mended

    first, broken, mended = edit(path, act)

    assert first == mended
    fault = next(each for each in broken if each.code == "HPX035")
    assert fault.severity is types.DiagnosticSeverity.Error
    assert fault.range == types.Range(types.Position(2, 0), types.Position(2, 4))
    assert "given" in fault.message


def test_a_fault_with_one_remedy_has_a_fix(path: Path) -> None:
    """The quick fix replaces the misspelt word and nothing else."""

    async def act(editor: Editor) -> Any:
        await editor.open(TEXT.replace("given keeps", "givn keeps"))
        line = types.Range(types.Position(2, 0), types.Position(2, 0))
        params = types.CodeActionParams(editor.document, line, types.CodeActionContext([]))
        return editor.uri, await editor.client.text_document_code_action_async(params)

    uri, (action,) = edit(path, act)

    assert action.title == "Replace givn by given"
    assert list(action.edit.changes[uri]) == [
        types.TextEdit(types.Range(types.Position(2, 0), types.Position(2, 4)), "given")
    ]


def test_hovering_a_predicate_shows_its_declaration_sentences_and_facts(path: Path, tmp_path: Path) -> None:
    """A predicate's hover has the declaration, the sentences, and the number of facts in the knowledge base."""
    from hapax import KnowledgeBase, add_facts, load_rules

    with KnowledgeBase(tmp_path / "farm.db") as kb:
        add_facts(kb, "is_made_from", [("Roquefort", "sheep milk"), ("Feta", "goat milk")], rules=load_rules(path))

    async def act(editor: Editor) -> Any:
        await editor.open(TEXT)
        params = types.HoverParams(editor.document, place(TEXT, "is_made_from(Cheese B"))
        return await editor.client.text_document_hover_async(params)

    text = edit(path, act, "--db", str(tmp_path / "farm.db")).contents.value

    assert "oracle is_made_from(Cheese, Milk)" in text
    assert "[1] is not made from [2]" in text
    assert "2 facts" in text


def test_completion_offers_types_inside_an_atom_and_predicates_outside(path: Path) -> None:
    """Inside brackets the file's types are offered, elsewhere its predicates, whose arguments are filled in."""

    async def act(editor: Editor) -> Any:
        text = TEXT + "keeps(\n\n"
        await editor.open(text)
        lines = text.count("\n")

        async def offered(line: int, column: int) -> dict[str, types.CompletionItem]:
            params = types.CompletionParams(editor.document, types.Position(line, column))
            completed = await editor.client.text_document_completion_async(params)
            return {item.label: item for item in completed.items}

        return await offered(lines - 2, 6), await offered(lines - 1, 0)

    inside, outside = edit(path, act)

    assert set(inside) == {"Cheese", "Farmer", "Food", "Milk"}
    assert outside["is_made_from"].insert_text == "is_made_from(${1:Cheese}, ${2:Milk})"
    assert "oracle" in outside


def test_a_name_leads_to_its_declaration_and_can_be_changed_everywhere(path: Path) -> None:
    """Definition and references find the predicate, and renaming changes each of its places; taken names are refused."""

    async def act(editor: Editor) -> Any:
        await editor.open(TEXT)
        at = place(TEXT, "keeps(Farmer X")
        client = editor.client
        definition = await client.text_document_definition_async(types.DefinitionParams(editor.document, at))
        context = types.ReferenceContext(include_declaration=True)
        uses = await client.text_document_references_async(types.ReferenceParams(context, editor.document, at))
        renamed = await client.text_document_rename_async(types.RenameParams(editor.document, at, "owns"))
        with pytest.raises(Exception, match="exists already"):
            await client.text_document_rename_async(types.RenameParams(editor.document, at, "is_made_from"))
        return definition, uses, renamed.changes[editor.uri]

    definition, uses, edits = edit(path, act)

    assert definition.range == types.Range(types.Position(2, 6), types.Position(2, 11))
    assert {use.range.start.line for use in uses} == {2, 5}
    assert {(each.range.start.line, each.new_text) for each in edits} == {(2, "owns"), (5, "owns")}


@pytest.mark.parametrize(
    ("at", "new", "is_refused"),
    [
        ("keeps(", "x'y", True),
        ("keeps(", "a_b-c", True),
        ("keeps(", "not", True),
        ("keeps(", "two words", True),
        ("keeps(", "", True),
        ("keeps(", "eats-meat", False),
        ("Farmer", "3 Farmers", True),
        ("Farmer", "Cattle farmer", False),
    ],
)
def test_a_new_name_is_one_that_the_language_can_read(path: Path, at: str, new: str, is_refused: bool) -> None:
    """A new name that the language would not read as one is refused, and with an accepted one the rules stay sound."""
    documents = RuleDocuments({str(path): TEXT})
    line, column = TEXT[: TEXT.index(at)].count("\n") + 1, TEXT.index(at) - TEXT.rfind("\n", 0, TEXT.index(at))
    name = documents.name_at(str(path), line, column)
    assert name is not None

    with pytest.raises(HapaxError, match="cannot be the name") if is_refused else nullcontext():
        documents.check_new_name(name, new)

    renamed = RuleDocuments({str(path): TEXT.replace(name.name, new)})
    assert is_refused or all(fault.severity is not Severity.ERROR for fault in renamed.diagnostics)


FOOD = """\
given is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"
given is_rebuilt(Dish, Year)
"""
MEALS = """\
import "food.rules" as food
given likes(Person, Dish)
given dislikes(Person, Dish)
aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in_food(Ingredient Z, Dish D))
@example is_in_food("rice", "paella")

@name eats
likes(Person X, Dish D) & is_in_food(Ingredient Z, Dish D) & dishes_with(Ingredient Z, Number K) & K > 1 -> eats(Person X, Dish D)
  unless dislikes(Person X, Dish D)
  unless is_rebuilt_food(Dish D, Year Y) & Y > 1900
"""


def test_newer_words_of_the_language_are_known(tmp_path: Path) -> None:
    """Aggregates, imports under a name, exceptions and examples are hovered, completed, found, renamed and laid out."""
    (tmp_path / "food.rules").write_text(FOOD, "utf-8")
    path, untidy = tmp_path / "meals.rules", MEALS.replace("unless dislikes(Person X,", "unless   dislikes( Person X,")
    path.write_text(untidy, "utf-8")
    food = (tmp_path / "food.rules").as_uri()

    async def act(editor: Editor) -> Any:
        await editor.open(untidy)
        client, document = editor.client, editor.document

        async def hover(word: str) -> str:
            return (
                await client.text_document_hover_async(types.HoverParams(document, place(untidy, word)))
            ).contents.value

        hovers = [await hover(word) for word in ("dishes_with(", "dislikes( ", "is_rebuilt_food(", "eats\n")]
        of_example = types.DefinitionParams(document, place(untidy, 'is_in_food("rice'))
        definition = await client.text_document_definition_async(of_example)
        renaming = types.RenameParams(document, place(untidy, "is_in_food(Ingredient Z, Dish D) &"), "lies_in_food")
        renamed = (await client.text_document_rename_async(renaming)).changes
        completing = types.CompletionParams(document, types.Position(untidy.count("\n") - 1, len("  unless ")))
        offered = {item.label for item in (await client.text_document_completion_async(completing)).items}
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        (change,) = await client.text_document_formatting_async(types.DocumentFormattingParams(document, options))
        return hovers, definition, renamed, offered, change.new_text

    hovers, definition, renamed, offered, laid_out = edit(path, act)

    assert "K = count(Dish D: is_in_food(Ingredient Z, Dish D))" in hovers[0]
    assert all("In 1 rule." in text for text in hovers[:3])
    assert "PersonX eats" in hovers[3]
    assert (definition.uri, definition.range.start) == (food, types.Position(0, len("given ")))
    assert [(each.range.start.line, each.new_text) for each in renamed[food]] == [(0, "lies_in")]
    assert [each.range.start.line for each in renamed[path.as_uri()]] == [3, 4, 7]
    assert {each.new_text for each in renamed[path.as_uri()]} == {"lies_in_food"}
    assert {"is_in_food", "dishes_with", "unless"} <= offered
    assert not {"is_in", "is_rebuilt"} & offered
    assert not [name for name in offered if name.startswith("unless_")]
    assert laid_out == MEALS


def test_a_file_is_laid_out_and_outlined(path: Path) -> None:
    """Formatting gives the layout of `hapax fmt`, and the outline has types, predicates and rules in order."""
    untidy = TEXT.replace("given keeps(Farmer, Milk)", "given   keeps( Farmer,Milk ).")

    async def act(editor: Editor) -> Any:
        await editor.open(untidy)
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        client = editor.client
        edits = await client.text_document_formatting_async(types.DocumentFormattingParams(editor.document, options))
        outline = await client.text_document_document_symbol_async(types.DocumentSymbolParams(editor.document))
        return edits, [entry.name for entry in outline]

    (change,), names = edit(path, act)

    assert change.new_text == TEXT
    assert names == ["Cheese", "is_made_from", "keeps", "sells"]


def test_columns_are_those_of_the_protocol(path: Path) -> None:
    """A character outside the basic plane counts as two units before the range at fault."""

    async def act(editor: Editor) -> Any:
        await editor.open(TEXT)
        return await editor.type('oracle p(A): "\U0001f9c0 [9]"\n')

    (fault, *_) = [each for each in edit(path, act) if each.severity is types.DiagnosticSeverity.Error]

    assert fault.range.start.line == 0
    assert fault.range.end == types.Position(0, 21)


def test_files_of_one_folder_of_rules_are_checked_together(tmp_path: Path) -> None:
    """A predicate declared in another file of --rules is known, and its definition lies there."""
    declared, used = tmp_path / "declared.rules", tmp_path / "used.rules"
    head, _, rule = TEXT.partition("@name")
    declared.write_text(head, "utf-8")
    used.write_text(f"@name{rule}", "utf-8")

    async def act(editor: Editor) -> Any:
        faults = await editor.open(used.read_text("utf-8"))
        at = place(used.read_text("utf-8"), "is_made_from")
        params = types.DefinitionParams(editor.document, at)
        return faults, await editor.client.text_document_definition_async(params)

    faults, definition = edit(used, act, "--rules", str(tmp_path))

    assert not any("is_made_from/2 is not declared" in fault.message for fault in faults)
    assert definition.uri == declared.as_uri()


def test_the_extension_colours_the_words_of_the_language() -> None:
    """The grammar for colours knows the keywords of the parser, all of them and no others."""
    grammar = json.loads((EXTENSION / "syntaxes" / "hapax.tmLanguage.json").read_text("utf-8"))
    listed = re.search(r"\(([a-z|]+)\)", grammar["repository"]["keyword"]["match"])

    assert listed is not None
    assert set(listed[1].split("|")) == set(KEYWORDS)


@pytest.mark.harness
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.timeout(600)
def test_the_extension_is_packaged(tmp_path: Path) -> None:
    """`npm ci` and `npm run package` make an extension with the client, the colours and the language."""
    folder = tmp_path / "vscode"
    shutil.copytree(EXTENSION, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))

    for command in (("npm", "ci", "--no-audit", "--no-fund"), ("npm", "run", "package")):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    with zipfile.ZipFile(folder / "hapax.vsix") as package:
        names = set(package.namelist())
    assert {"extension/dist/extension.js", "extension/syntaxes/hapax.tmLanguage.json"} <= names
