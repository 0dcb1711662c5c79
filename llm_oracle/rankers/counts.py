"""Counts of names, alone and near each other, in a folder of texts: popularity as the world's texts have it.

An index on disk (Tantivy) answers exactly: names are compared by their words, whatever their case and accents. *Near*
means in one passage, which is a paragraph, or a piece of at most `PASSAGE_WORDS` words of a longer one, which ends with
a sentence if it can. How much a model knows about a fact goes with the number of texts that hold all its names (Kandpal
et al. 2023).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.writing.words import counted
from hapax.kb.files import system
from hapax.kb.files.unfinished import exchange, unfinished
from hapax.llm_oracle.backend import SCORING_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity
from hapax.llm_oracle.weights.cache import Notice, alone, cache_folder

PASSAGE_WORDS = 200
"""Most words of a passage. A paragraph of prose rarely has more."""

INDEX_VERSION = 3
"""Part of an index's name: an index made by another way of cutting or comparing is not used."""

FIELD, TOKENIZER = "text", "names"
WRITER_BYTES = 400_000_000
"""Memory of the index's writer."""
WRITER_THREADS = 2

UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts without blanks between words: Thai to Khmer, Japanese, Chinese. Each of them counts as a word."""

LAST_SIGNS = re.compile(r"(?<=[^\W_])[+#]+(?![^\W_])")
"""Signs that end a name and tell it from another, as in C++, C# and 18+."""

SIGN_WORDS = {"+": "plus", "#": "sharp"}

SENTENCE_END = re.compile(r".*(?:[^\W\d_]{4}[.!?][\"'”’)\]]*|[。！？])")
"""The last word of a sentence. A shorter word with a full stop may be an abbreviation, as in St. Petersburg."""

CLAUSE_END = re.compile(r".*[,;:)]")

SUFFIXES = (".txt", ".md", ".jsonl", ".text", ".txt.gz", ".jsonl.gz")


class NameCounts:
    """Counts of names in the passages of a folder's texts, from its index."""

    def __init__(self, index: Any, identity: ModelIdentity) -> None:
        self.identity = identity
        self._searcher = index.searcher()
        self._schema = index.schema
        self._analyzer = _analyzer()

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        """The number of passages that hold all names of each tuple; for the empty tuple, of all passages.

        A name without a letter or digit occurs nowhere.
        """
        return [self._count(together) for together in names]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        """Raises HapaxError: a text has no likelihood here, only the names in it have counts."""
        raise HapaxError(
            f"{self.identity.name} counts names and gives no likelihood of {counted(len(texts), 'text')}.",
            Remedy("Use it as a judge of {}; here choose another likelihood model.", Operation("evaluate_long_tail")),
        )

    def _count(self, names: tuple[str, ...]) -> int:
        if not names:
            return int(self._searcher.num_docs)
        # A name without words has no query, and then nothing holds all names.
        queries = [self._query(words) for words in map(self._analyzer.analyze, map(_spaced, names)) if words]
        if len(queries) < len(names):
            return 0
        from tantivy import Occur, Query

        query = Query.boolean_query([(Occur.Must, part) for part in queries])
        # No passage is wanted, only their number; the library insists on at least one.
        return int(self._searcher.search(query, limit=1, count=True).count)

    def _query(self, words: list[str]) -> Any:
        from tantivy import Query

        if len(words) == 1:
            return Query.term_query(self._schema, FIELD, words[0])
        # The words of a name have to follow each other.
        return Query.phrase_query(self._schema, FIELD, [*words])


def open_counts(folder: Path, notice: Notice) -> NameCounts:
    """The counts of a folder, indexed at its first use and again after a change of its files.

    Raises HapaxError for a folder without texts.
    """
    texts = _texts(folder)
    listed = [(path.relative_to(folder).as_posix(), *_state(path)) for path in texts]
    # By names, sizes and dates, which are quick to read; the identity is a hash of the passages.
    key = hashlib.sha256(json.dumps([INDEX_VERSION, str(folder.resolve()), listed]).encode()).hexdigest()[:24]
    place = cache_folder() / "counts" / key
    place.parent.mkdir(parents=True, exist_ok=True)
    with alone(place, notice, "indexes the same texts"):
        if not place.exists():
            _make_index(texts, place, notice)
    from tantivy import Index

    index = Index.open(str(place))
    index.register_tokenizer(TOKENIZER, _analyzer())
    digest = json.loads((place / "texts.json").read_text("utf-8"))["digest"]
    return NameCounts(index, ModelIdentity(f"counts/{folder.resolve().name}", f"{digest[:16]}-{INDEX_VERSION}"))


def _texts(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise HapaxError(f"{folder} is not a folder. Give a folder of texts: counts:FOLDER.")
    found = sorted(path for path in folder.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file())
    if not found:
        raise HapaxError(
            f"{folder} holds no texts. Their names should end in {', '.join(SUFFIXES)}; a line of a .jsonl file is an "
            'object with "text".'
        )
    return found


def _state(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _make_index(texts: Sequence[Path], place: Path, notice: Notice) -> None:
    """Write the index beside its place, then rename it: a killed run leaves no half index."""
    from tantivy import Document, Index

    size = sum(path.stat().st_size for path in texts) / 1e6
    notice(f"Indexing {len(texts)} texts ({size:,.0f} MB) for their first use. This takes about a minute per 1,000 MB.")
    began = system.monotonic()
    unread: dict[Path, int] = {}
    with unfinished(place) as new:
        new.mkdir()
        index = Index(_schema(), path=str(new))
        index.register_tokenizer(TOKENIZER, _analyzer())
        writer = index.writer(heap_size=WRITER_BYTES, num_threads=WRITER_THREADS)
        digest = hashlib.sha256()
        passages = 0
        try:
            for path in texts:
                for passage in _passages(path, unread):
                    digest.update(passage.encode("utf-8") + b"\0")
                    writer.add_document(Document(**{FIELD: _spaced(passage)}))
                    passages += 1
            writer.commit()
        finally:
            # Until its threads end, they go on writing into the folder.
            writer.wait_merging_threads()
        (new / "texts.json").write_text(json.dumps({"digest": digest.hexdigest()}), "utf-8")
        exchange(new, place)
    if unread:
        path, number = next(iter(unread.items()))
        notice(
            f"{counted(len(unread), 'text is', 'texts are')} not in UTF-8, see {path}:{number}: names with the letters "
            "that cannot be read are not found there. Convert such files, for instance by iconv."
        )
    notice(f"Indexed {passages:,} passages in {system.monotonic() - began:.0f} s; kept in {place}.")


def _spaced(text: str) -> str:
    """The text in composed letters, as names are mostly written, with blanks around those that stand for words.

    The index splits words at signs, so that those which belong to a name become letters of it.
    """
    composed = unicodedata.normalize("NFC", text)
    lettered = LAST_SIGNS.sub(lambda signs: "".join(SIGN_WORDS[sign] for sign in signs[0]), composed)
    return UNSPACED.sub(r" \g<0> ", lettered)


def _passages(path: Path, unread: dict[Path, int]) -> Iterator[str]:
    """Paragraphs, which blank lines separate, in pieces of at most PASSAGE_WORDS words, cut between sentences.

    `unread` gets the first line that is not in UTF-8.
    """
    words: list[str] = []
    for line in _lines(path, unread):
        here = line.split()
        if not here and words:
            yield " ".join(words)
            words = []
        words += here
        # A line may hold several passages.
        while len(words) > PASSAGE_WORDS:
            size = _passage_size(words)
            yield " ".join(words[:size])
            words = words[size:]
    if words:
        yield " ".join(words)


def _passage_size(words: Sequence[str]) -> int:
    """Number of words that a passage takes: up to the last end of a sentence in its second half, if there is one.

    Cut elsewhere, a name might be half in this passage and half in the next, and be found in neither.
    """
    ends = range(PASSAGE_WORDS, PASSAGE_WORDS // 2, -1)
    for is_end in (SENTENCE_END.fullmatch, CLAUSE_END.fullmatch):
        for size in ends:
            if is_end(words[size - 1]):
                return size
    return PASSAGE_WORDS


def _lines(path: Path, unread: dict[Path, int]) -> Iterator[str]:
    """The lines of a text; the text of a JSON line, with a blank line after it, because the next is another text."""
    open_file = gzip.open if path.name.endswith(".gz") else open
    is_json = path.name.removesuffix(".gz").endswith(".jsonl")
    try:
        with open_file(path, "rb") as stream:
            for number, raw in enumerate(cast(BinaryIO, stream), start=1):
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError:
                    unread.setdefault(path, number)
                    line = raw.decode("utf-8", "replace")
                if is_json:
                    yield from _text_of(line, path, number).splitlines()
                    yield ""
                else:
                    yield line
    except (OSError, EOFError) as fault:
        raise HapaxError(f"{path} cannot be read: {fault}. Correct the file or remove it from the folder.") from fault


def _text_of(line: str, path: Path, number: int) -> str:
    try:
        text = json.loads(line)["text"] if line.strip() else ""
    except (ValueError, TypeError, LookupError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise HapaxError(f'{path}:{number} is not a JSON object with "text". Correct the line or remove the file.')
    return text.encode("utf-8", "replace").decode("utf-8")  # JSON may hold half a character


def _schema() -> Any:
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field(FIELD, stored=False, tokenizer_name=TOKENIZER, index_option="position")
    return builder.build()


def _analyzer() -> Any:
    """Words are runs of letters and digits, in lower case and without accents."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase()).filter(Filter.ascii_fold()).build()


def _opened(request: ModelRequest) -> NameCounts:
    notice = request.options.notice or (lambda _: None)
    return request.once(lambda: open_counts(Path(request.argument), notice))


BACKEND = Backend(
    open=_opened,
    argument="FOLDER",
    roles=SCORING_ROLES,
    abilities="how often names occur, alone and together, in the texts of a folder",
    missing=lambda: missing_of("counts"),
    price=FREE,
)
