"""Export of pairs as tasks for other programs: a folder for lm-evaluation-harness and one for Inspect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.dataset.columns import json_line
from hapax.evaluation.dataset.harnesses import METADATA, Function, group_files, yaml_text
from hapax.evaluation.winograd.asking import SkipFaulty, SkipLeaked, Sources, WordingVariant
from hapax.evaluation.winograd.data import Pair, pairs_of
from hapax.evaluation.winograd.files import read_file, without_leaks
from hapax.evaluation.winograd.prompts import PROMPTED, PromptMethod, PromptWording, prompt
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.unfinished import replace_file

_AVERAGED = ("single", "pair", "unparsed")
"""Metrics whose value for a group of tasks is the mean over all documents."""

CHOOSING = (PromptMethod.ZERO_SHOT, PromptMethod.ONE_SHOT)
"""Methods without reasoning before the answer, so that the likeliest of the four answers can be chosen."""

FORMATS = ("lm-eval", "inspect")

_HERE = Path(__file__).parent

# Files that the tasks include, by the end of the tasks' names. The harness treats every file that ends in .yaml as a
# task, so these have no such suffix.
_BASES = {"": "_written_yaml", "_choice": "_choice_yaml"}

_METRICS = """\
`single` is the share of sentences with a right answer, `pair` the share of pairs with two right answers, `consistency`
the share of families with right answers only, and `unparsed` the share of sentences without a readable answer, which
count as wrong. Each document is a pair of sentences. Tasks that end in `_choice` take the likeliest of the four pairs
of answers; the others read the answers from the model's text, by the rules in `reading.py`."""


@checked
@dataclass(frozen=True, slots=True)
class SchemaExportOptions:
    """Options of an export."""

    name: Annotated[str, Option("First part of the task names.")] = "winograd"
    variant: WordingVariant = PromptWording.PAPER
    sources: Sources = ()
    formats: Annotated[tuple[str, ...], Option("Programs to write tasks for.", name="format", choices=FORMATS)] = (
        FORMATS
    )
    skip_leaked: SkipLeaked = False
    skip_faulty: SkipFaulty = False


@checked
@extras_named()
def export_schemas(
    paths: Sequence[str | Path], folder: str | Path, options: SchemaExportOptions | None = None
) -> list[Path]:
    """Write the pairs of files as tasks for lm-evaluation-harness and Inspect, and return the paths of the tasks.

    The same files and options give the same bytes. Raises HapaxError if there are no pairs.
    """
    folder, options = Path(folder), options or SchemaExportOptions()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", options.name):
        raise HapaxError(f"{options.name!r} is not a valid task name. Use lower-case letters, digits and underscores.")
    by_slug: dict[str, list[Pair]] = {}
    pairs: list[Pair] = []
    for path in paths:
        pairs += pairs_of(read_file(Path(path), skip_faulty=options.skip_faulty).items)
    for pair in without_leaks(pairs) if options.skip_leaked else pairs:
        if not options.sources or pair[0].source in options.sources:
            # The harness takes lower-case letters, digits and underscores in the names of tasks.
            slug = re.sub(r"[^a-z0-9]+", "_", pair[0].source.lower()).strip("_") or "pairs"
            by_slug.setdefault(slug, []).append(pair)
    if not by_slug:
        raise HapaxError(
            f"{', '.join(map(str, paths))}: no pairs to export.",
            Remedy("Name another file, or another {}.", Setting("options.sources")),
        )
    written = []
    if "lm-eval" in options.formats:
        written += _write(folder / "lm_eval", _harness_files(by_slug, options))
    if "inspect" in options.formats:
        written += _write(folder / "inspect", _inspect_files(by_slug, options))
    return written


def _write(folder: Path, files: Iterable[tuple[str, str]]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in files:
        paths.append(folder / name)
        replace_file(paths[-1], text)
    return paths


def _column(method: PromptMethod) -> str:
    return f"prompt_{method.value.replace('-', '_')}"


def _harness_files(by_slug: Mapping[str, Sequence[Pair]], options: SchemaExportOptions) -> Iterator[tuple[str, str]]:
    for slug, pairs in by_slug.items():
        yield f"{slug}.jsonl", "".join(json_line(_document(pair, options.variant)) for pair in pairs)
    yield "utils.py", _shipped("shipped_lm_eval.py")
    yield "reading.py", _shipped("reading.py")
    for ending, base in _BASES.items():
        yield base, yaml_text(_base(ending))
        methods = CHOOSING if ending else PROMPTED
        tasks = {}
        for slug, method in product(by_slug, methods):
            text = f"{{{{{_column(method)}}}}}"  # a template of the harness: {{prompt_aot}}
            content = {"dataset_kwargs": {"data_file": f"{slug}.jsonl"}, "doc_to_text": text}
            tasks[f"{options.name}{ending}_{slug}_{method.value.replace('-', '_')}"] = content
        yield from group_files(f"{options.name}{ending}", base, tasks, _AVERAGED)
    yield "README.md", _HARNESS_README.format(name=options.name, metrics=_METRICS)


def _document(pair: Pair, variant: PromptWording) -> dict[str, Any]:
    options = pair[0].options
    return {
        "pair": pair[0].pair,
        "family": pair[0].family,
        "sentences": [item.text for item in pair],
        "options": list(options),
        "gold": [item.answer for item in pair],
        # Place in `choices`, in which the second answer runs fastest.
        "label": 2 * pair[0].answer + pair[1].answer,
        "choices": [f"1. {first} 2. {second}" for first, second in product(options, repeat=2)],
        # The harness puts a blank between prompt and answer.
        **{_column(method): prompt(pair, method, variant).rstrip(" ") for method in PROMPTED},
    }


def _base(ending: str) -> dict[str, Any]:
    asking: dict[str, Any] = {
        "output_type": "generate_until",
        "doc_to_target": "{{choices[label]}}",
        "process_results": Function("utils.process_generated"),
        # Models go on with a further question, which is cut off.
        "generation_kwargs": {"until": ["\n\nQ:"], "do_sample": False, "max_gen_toks": 512},
    }
    if ending:
        asking = {
            "output_type": "multiple_choice",
            "doc_to_choice": "choices",
            "doc_to_target": "label",
            "process_results": Function("utils.process_choice"),
        }
    means = [{"metric": name, "aggregation": "mean", "higher_is_better": name != "unparsed"} for name in _AVERAGED]
    consistency = {"metric": "consistency", "aggregation": Function("utils.consistency"), "higher_is_better": True}
    return {
        "custom_dataset": Function("utils.load"),
        "test_split": "test",
        **asking,
        "metric_list": [*means, consistency],
        "metadata": METADATA,
    }


_HARNESS_README = """\
# Tasks of `{name}` for lm-evaluation-harness

```
lm-eval validate --tasks {name} --include_path lm_eval
lm-eval run --model hf --model_args pretrained=MODEL --tasks {name}_choice --include_path lm_eval
```

Nothing is downloaded: the pairs are in this folder, which `--include_path` names. In the group `{name}` the model
writes answers to the paper's six prompts; in `{name}_choice` it chooses one after the zero-shot and one-shot prompts.

{metrics}
"""


def _inspect_files(by_slug: Mapping[str, Sequence[Pair]], options: SchemaExportOptions) -> Iterator[tuple[str, str]]:
    for slug, pairs in by_slug.items():
        for method in PROMPTED:
            samples = (json_line(sample(pair, method, options.variant)) for pair in pairs)
            yield f"{slug}--{method.value}.jsonl", "".join(samples)
    yield "task.py", _shipped("shipped_inspect.py")
    yield "reading.py", _shipped("reading.py")
    yield (
        "README.md",
        f"# Pairs of Winograd sentences for Inspect\n\n```\ninspect eval task.py -T source={next(iter(by_slug))} "
        "-T method=aot --model MODEL\n```\n\n"
        f"Sources: {', '.join(by_slug)}. Methods: {', '.join(PROMPTED)}.\n",
    )


def sample(pair: Pair, method: PromptMethod, variant: PromptWording) -> dict[str, Any]:
    """A pair with the fields of Inspect's `Sample`."""
    document = _document(pair, variant)
    return {
        "input": document[_column(method)],
        "target": document["choices"][document["label"]],
        "id": document["pair"],
        "metadata": {name: document[name] for name in ("family", "sentences", "options", "gold")},
    }


def _shipped(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
