"""`hapax rules lsp`: an editor meets the checker through the client of the protocol's own library."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

import hapax

TEXT = """\
type Cheese < Food
oracle is_made_from(Cheese, Milk): "[1] is made from [2]" / "[1] is not made from [2]" / "is [1] made from [2]?"
given keeps(Farmer, Milk)

@name sells
keeps(Farmer X, Milk A) & is_made_from(Cheese B, Milk A) -> can_sell(Farmer X, Cheese B)
"""
SECONDS = 60
EXTENSION = Path(__file__).parents[3] / "editors" / "vscode"


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

    async def hover(self, at: types.Position) -> str:
        found = await self.client.text_document_hover_async(types.HoverParams(self.document, at))
        return str(found.contents.value)  # type: ignore[union-attr]

    async def offered(self, line: int, column: int) -> dict[str, types.CompletionItem]:
        params = types.CompletionParams(self.document, types.Position(line, column))
        return {item.label: item for item in (await self.client.text_document_completion_async(params)).items}  # type: ignore[union-attr]

    async def fixes(self, of: types.Range) -> Any:
        params = types.CodeActionParams(self.document, of, types.CodeActionContext([]))
        return await self.client.text_document_code_action_async(params)

    async def renamed(self, at: types.Position, new: str) -> Any:
        params = types.RenameParams(self.document, at, new)
        return (await self.client.text_document_rename_async(params)).changes  # type: ignore[union-attr]


def edit(path: Path, act: Callable[[Editor], Awaitable[None]], *options: str) -> None:
    """Start `hapax rules lsp` with the options, let an editor act, and end the server as editors do."""

    async def run() -> None:
        client = LanguageClient("editor", "1")
        await client.start_io(sys.executable, "-m", "hapax.cli", "rules", "lsp", *options)
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        try:
            await act(Editor(client, path))
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


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
    """With code, severity, range and a fix where there is one remedy; a character may count as two units of the protocol."""

    async def act(editor: Editor) -> None:
        first = await editor.open(TEXT)
        broken = await editor.type(TEXT.replace("given keeps", "givn keeps"))
        slip = types.Range(types.Position(2, 0), types.Position(2, 4))
        (mended,) = await editor.fixes(slip)
        written = await editor.type(TEXT.replace("is_made_from(Cheese B", "is_made_form(Cheese B"))
        use = types.Range(types.Position(5, 26), types.Position(5, 38))
        (respelt,) = await editor.fixes(use)
        assert await editor.type(TEXT) == first

        fault = next(each for each in broken if each.code == "HPX035")
        assert (fault.severity, fault.range) == (types.DiagnosticSeverity.Error, slip)
        assert mended.edit.changes == {editor.uri: (types.TextEdit(slip, "given"),)}
        assert "HPX201" in {each.code for each in written}
        assert respelt.title == "Replace is_made_form by is_made_from"
        assert respelt.edit.changes == {editor.uri: (types.TextEdit(use, "is_made_from"),)}

        wide = await editor.type('oracle p(A): "\U0001f9c0 [9]"\n')
        (fault,) = [each for each in wide if each.severity is types.DiagnosticSeverity.Error]
        assert fault.range.end == types.Position(0, 21)

    edit(path, act)


def test_an_editor_shows_signatures_and_colours_names_by_meaning(path: Path) -> None:
    """Inside the brackets stands the predicate's declaration with the present argument; every name has its kind."""

    async def act(editor: Editor) -> None:
        await editor.open(TEXT)

        async def signature(word: str) -> types.SignatureHelp | None:
            params = types.SignatureHelpParams(editor.document, place(TEXT, word))
            return await editor.client.text_document_signature_help_async(params)

        first, second = await signature("Farmer X"), await signature("Milk A) &")
        params = types.SemanticTokensParams(editor.document)
        data = (await editor.client.text_document_semantic_tokens_full_async(params)).data  # type: ignore[union-attr]
        legend, names, line, column = ["function", "class", "method"], [], 0, 0
        for number in range(0, len(data), 5):
            down, right, length, kind, _ = data[number : number + 5]
            line, column = line + down, right if down else column + right
            names.append((TEXT.split("\n")[line][column : column + length], legend[kind]))

        assert await signature("sells") is None
        assert first is not None
        assert second is not None
        assert (first.signatures[0].label, first.active_parameter) == ("keeps(Farmer, Milk)", 0)
        assert second.active_parameter == 1
        assert {("Cheese", "class"), ("is_made_from", "function"), ("sells", "method")} <= set(names)
        assert len(names) == len(re.findall(r"Cheese|Food|Milk|Farmer|is_made_from|keeps|sells|can_sell", TEXT))

    edit(path, act)


def test_an_editor_shows_and_completes(path: Path, tmp_path: Path) -> None:
    """Declaration, sentences and stored facts of a predicate; types inside an atom, predicates outside."""
    with hapax.KnowledgeBase(tmp_path / "farm.db") as kb:
        rows = [("Roquefort", "sheep milk"), ("Feta", "goat milk")]
        hapax.add_facts(kb, "is_made_from", rows, rules=hapax.load_rules(path))

    async def act(editor: Editor) -> None:
        await editor.open(TEXT)
        shown = await editor.hover(place(TEXT, "is_made_from(Cheese B"))
        assert all(
            part in shown for part in ("oracle is_made_from(Cheese, Milk)", "[1] is not made from [2]", "2 facts")
        )

        text = TEXT + "keeps(\n\n"
        await editor.type(text)
        lines = text.count("\n")
        inside, outside = await editor.offered(lines - 2, 6), await editor.offered(lines - 1, 0)
        assert set(inside) == {"Cheese", "Farmer", "Food", "Milk"}
        assert outside["is_made_from"].insert_text == "is_made_from(${1:Cheese}, ${2:Milk})"
        assert "oracle" in outside

    edit(path, act, "--db", str(tmp_path / "farm.db"))


def test_a_name_leads_to_its_declaration_and_can_be_changed_everywhere(path: Path) -> None:
    """Predicates, types and rules; names that are taken, or that the language cannot read, are refused."""

    async def act(editor: Editor) -> None:
        await editor.open(TEXT)
        client, at = editor.client, place(TEXT, "keeps(Farmer X")
        definition = await client.text_document_definition_async(types.DefinitionParams(editor.document, at))
        context = types.ReferenceContext(include_declaration=True)
        uses = await client.text_document_references_async(types.ReferenceParams(context, editor.document, at))
        assert definition.range == types.Range(types.Position(2, 6), types.Position(2, 11))  # type: ignore[union-attr]
        assert {use.range.start.line for use in uses or ()} == {2, 5}

        for word, new, lines in (
            ("keeps(Farmer X", "owns", {2, 5}),
            ("keeps(Farmer X", "eats-meat", {2, 5}),
            ("Cheese B", "Soft cheese", {0, 1, 5}),
            ("sells", "trade", {4}),
        ):
            edits = (await editor.renamed(place(TEXT, word), new))[editor.uri]
            assert {each.range.start.line for each in edits} == lines
            assert {each.new_text for each in edits} == {new}
        for new in ("is_made_from", "x'y", "a_b-c", "not", "two words", ""):
            with pytest.raises(Exception, match=r"exists already|cannot be the name"):
                await editor.renamed(at, new)

    edit(path, act)


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


def test_aggregates_imports_exceptions_and_examples_are_known(tmp_path: Path) -> None:
    """They are hovered, completed, found and renamed across files."""
    (tmp_path / "food.rules").write_text(FOOD, "utf-8")
    path = tmp_path / "meals.rules"
    path.write_text(MEALS, "utf-8")
    food = (tmp_path / "food.rules").as_uri()

    async def act(editor: Editor) -> None:
        await editor.open(MEALS)
        assert "K = count(Dish D: is_in_food(Ingredient Z, Dish D))" in await editor.hover(place(MEALS, "dishes_with("))
        for word in ("dislikes(Person", "is_rebuilt_food("):
            assert "In 1 rule." in await editor.hover(place(MEALS, word))
        of_example = types.DefinitionParams(editor.document, place(MEALS, 'is_in_food("rice'))
        definition: Any = await editor.client.text_document_definition_async(of_example)
        assert (definition.uri, definition.range.start) == (food, types.Position(0, len("given ")))

        renamed = await editor.renamed(place(MEALS, "is_in_food(Ingredient Z, Dish D) &"), "lies_in_food")
        assert [(each.range.start.line, each.new_text) for each in renamed[food]] == [(0, "lies_in")]
        assert [each.range.start.line for each in renamed[path.as_uri()]] == [3, 4, 7]
        offered = set(await editor.offered(MEALS.count("\n") - 1, len("  unless ")))
        assert {"is_in_food", "dishes_with", "unless"} <= offered
        assert not {"is_in", "is_rebuilt"} & offered
        assert not [name for name in offered if name.startswith("unless_")]

    edit(path, act)


def test_the_extension_colours_the_words_of_the_language() -> None:
    """All words that begin a statement, and no others."""
    grammar = json.loads((EXTENSION / "syntaxes" / "hapax.tmLanguage.json").read_text("utf-8"))
    listed = re.search(r"\(([a-z|]+)\)", grammar["repository"]["keyword"]["match"])

    assert listed is not None
    assert set(listed[1].split("|")) == {
        *("import", "type", "oracle", "functional", "given", "computed", "aggregate", "opposite", "fact"),
        *("symmetric", "asymmetric", "irreflexive", "transitive", "closed", "disjoint", "never"),
    }


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
