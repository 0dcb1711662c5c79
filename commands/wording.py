"""The words of the command line for settings and operations that messages name."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from hapax.grammar.remedies import Operation, Setting

OPTIONS = {
    'hapax.load_rules("shipped")': "`--rules shipped`",
    "hapax.with_entailments": "--entail",
    "kb": "--db",
    "judges": "--judge",
    "mapping": "--predicate NAME --columns FIRST,SECOND, or --map FILE",
    "mapping.columns": "--predicate NAME --columns FIRST,SECOND",
    "model": "-m",
    "models": "--ask",
    "options.model": "-m",
    "only": "--rule",
    "options.chosen": "--set",
    "options.evaluators": "--evaluator",
    "options.models": "--model",
    "options.rules": "--rule",
    "options.runs": "--run",
    "options.sample.unjudged": "--new",
    "options.scorers": "--scorer",
    "options.sources": "--source",
    "options.training": "--train",
    "options.variants": "--variant",
    "options.voters": "--voter",
    "options.way": "--ask",
    "options.wordings": "--wording",
    "predicate": "--of",
    "prices": "--price",
    "selection.rules": "--rule",
    "selection.runs": "--run",
    "selection.shared": "--in-both",
    "settings.calls_per_question": "--calls",
    "settings.critic": "--no-critic",
    "settings.likelihood": "--no-likelihood",
    "settings.own": "--prompt",
    "settings.promise": "--precision",
    "settings.statement_promise": "--statement-precision",
    "settings.values_per_call": "--values",
    "target.formats": "--format",
    "folder": "--out",
}
"""Options by the argument in Python. Any other has the argument's own name, or that of its last field."""

COMMANDS = {
    "ask_schemas": "evaluate winograd ask",
    "backup": "kb backup",
    "build_questions": "evaluate booqa build",
    "calibrate": "model calibrate",
    "check_rules": "check",
    "compile_rules": "rules compile",
    "evaluate_grid": "evaluate grid",
    "evaluate_instruction": "evaluate instruct",
    "evaluate_likelihood": "evaluate likelihood",
    "evaluate_long_tail": "evaluate long-tail",
    "evaluate_probe": "evaluate probe",
    "evaluate_soundness": "evaluate soundness",
    "expand_rules": "rules expand",
    "explain_fault": "rules explain",
    "export_facts": "export",
    "export_sheets": "votes export",
    "import_facts": "import",
    "import_lint": "evaluate lint",
    "import_schema_sheets": "evaluate winograd import",
    "import_sheets": "votes import",
    "lint_rules": "rules lint",
    "list_models": "model list",
    "merge": "data merge",
    "mine_rules": "rules mine",
    "retract": "data retract",
    "restore": "data retract --undo",
    "split_entailments": "evaluate entailment data",
    "stats": "data stats",
    "store_entailments": "evaluate entailment facts",
    "train_entailment": "evaluate entailment train",
    "verify": "kb verify",
    "why_not": "why-not",
    "withdrawn_facts": "data retract --list",
    "write_dataset": "data dataset",
}
"""Commands by the function in Python, where their names differ."""


class CommandLine:
    """Options and commands, as one types them."""

    call = "command"

    def setting(self, setting: Setting) -> str:
        option = OPTIONS.get(setting.name) or f"--{setting.name.rpartition('.')[2].replace('_', '-')}"
        return f"{option} {setting.metavariable}".rstrip()

    def operation(self, operation: Operation) -> str:
        return f"`{' '.join(self._words(operation))}`"

    def _words(self, operation: Operation) -> Iterator[str]:
        yield f"hapax {COMMANDS.get(operation.name, operation.name)}"
        # Quoted, because a stranger may have chosen a name, and the line is pasted into a shell.
        for argument in operation.arguments:
            yield shlex.quote(str(argument))
        for name, value in operation.settings.items():
            option = self.setting(Setting(name))
            yield option if value is True else f"{option} {shlex.quote(str(value))}"
