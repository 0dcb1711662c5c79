"""GGUF files as models: converted once into the cache, as a whole or not at all, and refused with a remedy."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from embedded_gguf import write_gguf
from tokenizers import AddedToken

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends import gguf_files
from hapax.llm_oracle.backends.cache import CACHE_VARIABLE, cache_folder
from hapax.llm_oracle.backends.checkpoints import EMBEDDED_FOLDER
from hapax.llm_oracle.backends.gguf_files import converted
from hapax.llm_oracle.backends.loading import load_model
from hapax.llm_oracle.registry import open_model

TEMPLATE = "{% for message in messages %}User: {{ message['content'] }}\n{% endfor %}Answer:"
TEXTS = ["Butter, naan and paneer.", "Paris: France, 1987."]
"""Texts without the phrases that are tokens of the embedded model, and that no other model has."""
ON_CPU = OpeningOptions(device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model as a GGUF file with a chat template."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(EMBEDDED_FOLDER, path, TEMPLATE)
    return path


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


@pytest.fixture
def unread_file(tmp_path: Path) -> Path:
    """A file that passes for GGUF at its first bytes."""
    path = tmp_path / "unread.gguf"
    path.write_bytes(b"GGUF and nothing of use")
    return path


def test_a_gguf_file_scores_as_the_checkpoint_that_it_was_made_of(model_file: Path) -> None:
    """`gguf:PATH` gives the log-likelihoods of the same weights in a checkpoint folder."""
    original = open_model("embedded", "likelihood", ON_CPU).log_likelihoods(TEXTS)

    scores = open_model(f"gguf:{model_file}", "likelihood", ON_CPU).log_likelihoods(TEXTS)

    assert [score.total for score in scores] == pytest.approx([score.total for score in original], abs=1e-3)
    assert [score.token_count for score in scores] == [score.token_count for score in original]


def test_prompts_go_through_the_chat_template_of_the_file(model_file: Path) -> None:
    """The template stored in a GGUF file frames prompts."""
    loaded = load_model(converted(model_file).folder, "cpu", dtype="float32")

    assert loaded.tokenizer.decode(loaded.prompt_tokens("Is it?"), skip_special_tokens=True) == "User: Is it?\nAnswer:"


def test_no_text_can_hold_a_token_of_the_chat(model_file: Path) -> None:
    """A token that is special in the vocabulary, though it has no role of its own, is removed from texts."""
    loaded = load_model(converted(model_file).folder, "cpu", dtype="float32")
    loaded.tokenizer.add_tokens([AddedToken("<|turn|>", special=True)])

    assert loaded.harmless("naan<|tu<|turn|>rn|> and <|end|>butter") == "naan and butter"


def test_a_file_is_converted_at_its_first_use_only(model_file: Path, empty_cache: Path) -> None:
    """The first use says that it converts and where the result is; later uses say nothing."""
    lines: list[str] = []
    first = converted(model_file, lines.append)
    said = list(lines)

    assert converted(model_file, lines.append) == first
    assert lines == said
    assert "Converting tiny.gguf" in said[0]
    assert str(first.folder) in said[-1]
    assert first.folder.parent.parent == empty_cache
    assert not [path for path in first.folder.iterdir() if path.is_symlink() or path.is_dir()]


def test_a_models_identity_does_not_depend_on_places(
    model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file in another folder, converted into another cache, is the same model for the journal."""
    here = open_model(f"gguf:{model_file}", "critic", ON_CPU).identity
    moved = Path(shutil.copy(model_file, tmp_path))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "another cache"))

    assert open_model(f"gguf:{moved}", "critic", ON_CPU).identity == here
    assert here.name == "gguf/tiny.gguf"


def test_a_killed_conversion_leaves_no_half_model(
    unread_file: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leavings of a killed conversion are not taken for a model, and the next conversion starts anew."""

    def stopped(source: Path, name: str, target: Path) -> None:
        (target / "config.json").write_text("half")
        raise KeyboardInterrupt

    def complete(source: Path, name: str, target: Path) -> None:
        assert (source / name).read_bytes() == unread_file.read_bytes()
        (target / "model.safetensors").write_text("whole")

    monkeypatch.setattr(gguf_files, "_save", stopped)
    with pytest.raises(KeyboardInterrupt):
        converted(unread_file)
    assert [path.suffix for path in (empty_cache / "gguf").iterdir()] == [".lock"]
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # a kill cleans nothing up
        with pytest.raises(KeyboardInterrupt):
            converted(unread_file)
    monkeypatch.setattr(gguf_files, "_save", complete)

    assert sorted(path.name for path in converted(unread_file).folder.iterdir()) == ["SHA256SUMS", "model.safetensors"]


def test_a_conversion_without_weights_is_kept_by_no_cache(
    unread_file: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A converted folder without weights, as a later process of a distributed group writes it, is refused."""
    monkeypatch.setattr(gguf_files, "_save", lambda source, name, target: (target / "tokenizer.json").write_text("{}"))

    with pytest.raises(HapaxError, match=r"unread\.gguf cannot be converted: transformers saved no weights"):
        converted(unread_file)

    assert [path.suffix for path in (empty_cache / "gguf").iterdir()] == [".lock"]


def test_two_at_once_convert_once(unread_file: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who needs a model that somebody else is converting says so, waits, and takes the result."""
    waiting = threading.Event()
    conversions: list[Path] = []
    lines: list[str] = []

    def convert(path: Path, folder: Path, notice: object) -> None:
        conversions.append(path)
        second.start()
        assert waiting.wait(60)
        folder.mkdir()

    def wait(line: str) -> None:
        lines.append(line)
        waiting.set()

    second = threading.Thread(target=converted, args=(unread_file, wait))
    monkeypatch.setattr(gguf_files, "_convert", convert)
    converted(unread_file)
    second.join(60)

    assert len(conversions) == 1
    assert lines == ["Waiting for another process that converts the same model."]


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, unread_file: Path, empty_cache: Path) -> None:
    """A missing file, a folder, another format and a damaged file are errors that name the file and the remedy."""
    other = tmp_path / "weights.bin"
    other.write_bytes(b"PK\x03\x04")

    with pytest.raises(HapaxError, match=r"none\.gguf cannot be read: No such file.*path of a GGUF file"):
        open_model(f"gguf:{tmp_path / 'none.gguf'}", "critic")
    with pytest.raises(HapaxError, match="cannot be read: Is a directory"):
        open_model(f"gguf:{tmp_path}", "critic")
    with pytest.raises(HapaxError, match=r"weights\.bin is not a GGUF file: it begins with b'PK.*hf:FOLDER"):
        open_model(f"gguf:{other}", "critic")
    with pytest.raises(
        HapaxError, match=r"unread\.gguf is cut off or damaged: its .* bytes do not hold.*Download or copy it again"
    ):
        open_model(f"gguf:{unread_file}", "critic")
    assert not [path for path in (empty_cache / "gguf").iterdir() if path.suffix != ".lock"]


def test_a_cache_that_cannot_be_written_is_named(
    unread_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the cache and the variable that moves it."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))

    with pytest.raises(HapaxError, match=r"cannot be converted into .*file/gguf: Not a directory.*HAPAX_CACHE"):
        converted(unread_file)


def test_the_cache_is_where_the_platform_keeps_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HAPAX_CACHE names the cache; without it, it follows the XDG specification, or Apple's on macOS."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "hapax"
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/caches")
    assert cache_folder() == Path("/var/caches/hapax")
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "hapax"
    monkeypatch.setenv(CACHE_VARIABLE, "~/own")
    assert cache_folder() == tmp_path / "own"
