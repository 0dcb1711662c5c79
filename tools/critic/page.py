"""The model card in Markdown, from the figures of `card.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

INTRODUCTION = """---
language: en
license: apache-2.0
base_model: HuggingFaceTB/SmolLM2-135M-Instruct
tags:
- hapax
- lora
- fact-verification
---
# The critic `smollm2-critic`

An adapter (LoRA) on SmolLM2-135M-Instruct that judges short claims such as *Butter is an ingredient in hummus.* Hapax
merges it into the model when `smollm2-critic` is opened. It is a small model with small knowledge: use it after critics
that know, as in `--critic reference:all,smollm2-critic`, and read the figures below before you believe it. Bad figures
are printed like good ones.

`python -m tools.critic.train` trains such an adapter (`--device cuda` on a graphics card, `--resume` continues),
`python -m tools.critic.averaging` joins several, and `python -m tools.critic.card --test` measures one and writes this
page.
"""

METHOD = """## What was kept out of training

- **Unseen entities**: 10 % of all keys by a hash of the name (5 % more for development). Such a name is the key of no
  training fact, and a value of one only if it is a class, such as a continent: a value of eight facts or more of its
  relation.
- **Unseen predicates**: every seventh of the atlas's predicates in the alphabet (every tenth of the rest for
  development), from all sources, with WordNet's facts about their keys. What WordNet says of others by means of such a
  key is kept out, too, unless the key is a class.
- **Outside facts**: written by hand, about entities that the atlas does not have; no training fact names any of these
  entities.

A test of the repository checks this on the claims that training draws.

Each fact is measured with a falsehood of the same type: half with a value drawn as often as it is true of other keys,
so that a value's own commonness tells nothing, half with one that is near in fame or spelling or that belongs to a
related key. AUC .5 is chance; intervals are 95 %, by Hanley and McNeil (1982), who take claims as independent. No
setting was chosen on the test parts; the list of predicates that are not judged follows from them.
"""

TRAINING = """## Training

Rank {rank} on {layers} projections, {megabytes:.1f} MB in float16, SHA-256
`{sha256}`.
Base: {base}.

{trainings} saw {claims:,} claims, half of them false, drawn from {facts:,} true facts
({sources}),
in the templates of the rules, some of them negated, and in paraphrases. A fact and a falsehood made from it, in the
same words, are trained together, by the cross entropy of the answer (yes or no after `True?`, and with the answers
exchanged after `False?`) and by that of choosing between the two.

Speed while this card was written: {per_second:.0f} claims a second of wall clock, {per_processor_second:.0f} a second
of processor time (bfloat16; threads: {threads}; the machine did other work, too).
"""


def page(content: Mapping[str, Any]) -> str:
    """The card."""
    parts = [INTRODUCTION, _training(content), METHOD, _measured(content["measured"]), _predicates(content)]
    return "\n".join([*parts, _relations(content["relations"])])


def _training(content: Mapping[str, Any]) -> str:
    own = {**content["adapter"], **content["speed"]}
    own["megabytes"] = own["bytes"] / 1e6
    own["claims"] = int(content["adapter"]["claims"])
    count = int(own.get("trainings", 1))
    own["trainings"] = "It" if count == 1 else f"It is the mean of {count} trainings, which together"
    own["facts"] = sum(content["facts"].values())
    own["sources"] = ", ".join(f"{count:,} {source}" for source, count in content["facts"].items())
    return TRAINING.format(**own)


def _measured(measured: Mapping[str, Mapping[str, Any]]) -> str:
    lines = ["## Figures", ""]
    for part, figures in measured.items():
        lines += [f"### {part[0].upper()}{part[1:]}", "", "| claims | AUC | n |", "|---|---|---|"]
        accepted = figures["accepted at 0.85"]
        lines += [_row(name, figure) for name, figure in figures.items() if "auc" in figure]
        lines += [
            "",
            f"P(yes) of 0.85 or more: {accepted['claims']} claims, {accepted['true']} of them true "
            f"({accepted['of truths']} of all are true).",
            "",
        ]
    return "\n".join(lines)


def _row(name: str, figure: Mapping[str, Any]) -> str:
    return f"| {name} | {_area(figure)} | {figure['claims']} |"


def _area(figure: Mapping[str, Any]) -> str:
    return f"{figure['auc']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


def _predicates(content: Mapping[str, Any]) -> str:
    entries: Mapping[str, Mapping[str, Any]] = content["predicates"]
    refused = [name for name, entry in entries.items() if not entry["judged"]]
    lines = [
        "## Predicates",
        "",
        f"A predicate whose AUC on unseen claims is below {content['bar']:.2f} is **not judged**: the critic has no",
        "opinion on its claims (`not covered`), and a chain asks the next critic. With fewer than 16 claims the AUC is",
        "that of all predicates of its kind, numbers or names (marked \\*). Predicates that are not in this table are",
        "judged; for them, see *unseen predicates*.",
        "",
        f"It may not judge: {', '.join(f'`{name}`' for name in refused) or 'none'}.",
        "",
        "| predicate | AUC | n | never trained on | judged |",
        "|---|---|---|---|---|",
    ]
    for name, entry in sorted(entries.items()):
        star = "" if entry["own"] else "\\*"
        unseen, judged = ("yes" if entry[key] else "no" for key in ("unseen", "judged"))
        lines.append(f"| `{name}` | {_area(entry)}{star} | {entry['claims']} | {unseen} | {judged} |")
    return "\n".join([*lines, ""])


def _relations(relations: Mapping[str, Mapping[str, Any]]) -> str:
    lines: Sequence[str] = [
        "## All relations, by source",
        "",
        "| relation | AUC | n |",
        "|---|---|---|",
        *(_row(name, figure) for name, figure in sorted(relations.items())),
    ]
    return "\n".join([*lines, ""])
