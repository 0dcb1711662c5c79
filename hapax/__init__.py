"""Hapax: a logic-programming knowledge engine for the long tail of what language models know.

Everything that a script or a notebook needs is here; `docs/python.md` shows it at work. Nothing below prints or exits.

    rules = hapax.load_rules("my.rules")
    with hapax.KnowledgeBase("my.db") as kb:
        hapax.search(rules, kb, hapax.open_models("embedded"))
        print(hapax.query("is_not_able_to_eat(tom, Dish)", rules, kb, assume=["is_allergic_to(tom, shellfish)"]).rows)

Names are loaded when they are first used, so that `import hapax` costs next to nothing. Modules below `hapax` may move
between versions; these names stay.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hapax.api.browsing import datasette_metadata
    from hapax.api.calibration import calibrate
    from hapax.api.entailments import (
        EntailmentChains,
        EntailmentsJudged,
        TrainingOptions,
        audit_consistency,
        audit_entailments,
        count_entailment_candidates,
        draw_audit,
        draw_entailments,
        entailment_chains,
        evaluate_training,
        import_entailment_graphs,
        judge_entailments,
        link_predicates,
        read_entailments,
        score_entailments,
        split_entailments,
        store_audited_entailments,
        store_entailments,
        summarise_entailments,
        train_entailment,
        write_entailment_splits,
    )
    from hapax.api.evaluations import (
        Evaluation,
        FlippedLabels,
        evaluate_ablation,
        evaluate_grid,
        evaluate_instruction,
        evaluate_likelihood,
        evaluate_long_tail,
        evaluate_probe,
        evaluate_soundness,
        import_lint,
        leaderboard,
        read_grid,
        read_schemas,
        report_votes,
        resolve_pronoun,
        resolve_schema_pairs,
        resolve_schemas,
    )
    from hapax.api.expansion import (
        ExpansionFiles,
        ProposedRules,
        expand_rules,
        lint_rules,
        suggest_rules,
        verbalise_rules,
    )
    from hapax.api.importing import FactRules
    from hapax.api.kept_rules import RulesKept, keep_rules, kept_rules
    from hapax.api.machine import Examination, ModelListings, doctor, list_models
    from hapax.api.mining import MinedRules, mine_rules
    from hapax.api.operations import (
        Progress,
        add_facts,
        check_rules,
        compile_rules,
        derive,
        explain_fault,
        export_facts,
        export_statements,
        format_rules,
        import_facts,
        load_rules,
        merge,
        near_misses,
        open_models,
        parse_rules,
        plan,
        query,
        restore,
        retract,
        search,
        why,
        why_not,
        with_entailments,
        withdrawn_facts,
    )
    from hapax.api.outputs import Contents, ReportPage, load_dataset, report, stats, write_dataset
    from hapax.api.questions import (
        AnsweredQuestions,
        QuestionWords,
        answer_questions,
        build_questions,
        read_questions,
        write_answers,
        write_question_pairs,
    )
    from hapax.api.results import Answers, Derivation, Explanation, SearchAccount, SearchResult, Statement, Statements
    from hapax.api.schemas import (
        AskedSchemas,
        ask_schemas,
        combine_proofs,
        compare_cases,
        count_schemas,
        export_schema_sheets,
        export_schemas,
        generate_schemas,
        import_schema_sheets,
        judge_schemas,
        measure_association,
        measure_robustness,
        reword_schemas,
        tabulate_schemas,
        write_rewordings,
        write_schemas,
    )
    from hapax.api.sheets import export_sheets, import_sheets
    from hapax.api.spending import Reconciliation, SpendingLedger, ledger, reconcile
    from hapax.api.verifying import Verification, backup, restore_backup, seal, verify
    from hapax.engine.certificates import Promise
    from hapax.engine.entailment.checks import EntailmentLimits
    from hapax.engine.expansion.propose import ExpansionSettings
    from hapax.engine.inference.session import LimitExceeded, QueryLimits
    from hapax.engine.mining.mine import MinedRule, MiningOptions
    from hapax.engine.probability.answers import ProbabilityOptions
    from hapax.engine.query_options import QueryOptions
    from hapax.engine.search.settings import SearchSettings
    from hapax.engine.search.thresholds import CriticRule
    from hapax.engine.withdrawal import FactChange
    from hapax.evaluation.booqa.answering import AnswerOptions
    from hapax.evaluation.booqa.build import BuildSettings
    from hapax.evaluation.booqa.filters import CountedUnit, CountRange
    from hapax.evaluation.calibration.run import CalibrationOptions
    from hapax.evaluation.dataset.blocked import BlockList
    from hapax.evaluation.dataset.formats import Target
    from hapax.evaluation.dataset.selection import SelectionOptions
    from hapax.evaluation.entailment.graph_import import GraphImportOptions
    from hapax.evaluation.entailment.linking import LinkOptions, PredicateLinks
    from hapax.evaluation.entailment.measuring import ConsistencyOptions, EntailmentOptions
    from hapax.evaluation.entailment.opening import ScorerOptions
    from hapax.evaluation.leaderboard.board import LeaderboardOptions
    from hapax.evaluation.link.baselines.instruct import InstructSettings
    from hapax.evaluation.link.baselines.session import InstructOptions
    from hapax.evaluation.link.likelihood.run import LikelihoodOptions
    from hapax.evaluation.link.probing.run import ProbeOptions
    from hapax.evaluation.report.build import ReportOptions
    from hapax.evaluation.votes.exporting import SheetExportOptions
    from hapax.evaluation.votes.items import SampleOptions
    from hapax.evaluation.votes.questions import SheetKind
    from hapax.evaluation.votes.soundness import SoundnessOptions
    from hapax.evaluation.winograd.asking import AskSettings
    from hapax.evaluation.winograd.export import SchemaExportOptions
    from hapax.evaluation.winograd.generation import SchemaGenerationOptions
    from hapax.evaluation.winograd.people import SchemaSheetOptions
    from hapax.evaluation.winograd.prompts import PromptMethod
    from hapax.evaluation.winograd.runs import SchemaAskOptions
    from hapax.grammar.arguments import ArgumentRejected
    from hapax.grammar.errors import Diagnostic, GoalRejected, HapaxError, RulesRejected
    from hapax.grammar.explanations import FaultExplanation
    from hapax.grammar.rules import Library, Rule
    from hapax.kb.intake import FactsRejected
    from hapax.kb.mappings import TableMapping
    from hapax.kb.records import Distribution
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.budget import Budget, BudgetReached
    from hapax.llm_oracle.protocols import Models

_HOMES = {
    "hapax.engine.certificates": ("Promise",),
    "hapax.api.calibration": ("calibrate",),
    "hapax.evaluation.calibration.run": ("CalibrationOptions",),
    "hapax.api.entailments": (
        "import_entailment_graphs",
        "summarise_entailments",
        "EntailmentChains",
        "EntailmentsJudged",
        "TrainingOptions",
        "audit_consistency",
        "audit_entailments",
        "count_entailment_candidates",
        "draw_audit",
        "draw_entailments",
        "entailment_chains",
        "evaluate_training",
        "read_entailments",
        "store_audited_entailments",
        "store_entailments",
        "judge_entailments",
        "link_predicates",
        "score_entailments",
        "split_entailments",
        "train_entailment",
        "write_entailment_splits",
    ),
    "hapax.api.questions": (
        "AnsweredQuestions",
        "QuestionWords",
        "answer_questions",
        "build_questions",
        "read_questions",
        "write_answers",
        "write_question_pairs",
    ),
    "hapax.evaluation.entailment.graph_import": ("GraphImportOptions",),
    "hapax.evaluation.entailment.linking": ("LinkOptions", "PredicateLinks"),
    "hapax.evaluation.entailment.measuring": ("ConsistencyOptions", "EntailmentOptions"),
    "hapax.evaluation.entailment.opening": ("ScorerOptions",),
    "hapax.evaluation.booqa.answering": ("AnswerOptions",),
    "hapax.engine.entailment.checks": ("EntailmentLimits",),
    "hapax.evaluation.booqa.build": ("BuildSettings",),
    "hapax.evaluation.booqa.filters": (
        "CountRange",
        "CountedUnit",
    ),
    "hapax.api.evaluations": (
        "Evaluation",
        "FlippedLabels",
        "evaluate_ablation",
        "evaluate_grid",
        "evaluate_instruction",
        "evaluate_likelihood",
        "evaluate_long_tail",
        "evaluate_probe",
        "evaluate_soundness",
        "import_lint",
        "leaderboard",
        "read_grid",
        "read_schemas",
        "report_votes",
        "resolve_pronoun",
        "resolve_schema_pairs",
        "resolve_schemas",
    ),
    "hapax.api.expansion": (
        "ExpansionFiles",
        "ProposedRules",
        "expand_rules",
        "lint_rules",
        "suggest_rules",
        "verbalise_rules",
    ),
    "hapax.api.importing": ("FactRules",),
    "hapax.api.kept_rules": ("RulesKept", "keep_rules", "kept_rules"),
    "hapax.api.machine": (
        "Examination",
        "ModelListings",
        "doctor",
        "list_models",
    ),
    "hapax.api.mining": ("MinedRules", "mine_rules"),
    "hapax.engine.mining.mine": ("MinedRule", "MiningOptions"),
    "hapax.api.operations": (
        "Progress",
        "add_facts",
        "check_rules",
        "compile_rules",
        "derive",
        "explain_fault",
        "export_facts",
        "export_statements",
        "export_statements",
        "format_rules",
        "import_facts",
        "load_rules",
        "merge",
        "near_misses",
        "open_models",
        "parse_rules",
        "plan",
        "query",
        "restore",
        "retract",
        "search",
        "why",
        "why_not",
        "with_entailments",
        "withdrawn_facts",
    ),
    "hapax.api.outputs": (
        "Contents",
        "ReportPage",
        "load_dataset",
        "report",
        "stats",
        "write_dataset",
    ),
    "hapax.api.spending": ("Reconciliation", "SpendingLedger", "ledger", "reconcile"),
    "hapax.api.browsing": ("datasette_metadata",),
    "hapax.api.verifying": ("Verification", "backup", "restore_backup", "seal", "verify"),
    "hapax.api.results": (
        "Answers",
        "Derivation",
        "Explanation",
        "SearchAccount",
        "SearchResult",
        "Statement",
        "Statements",
    ),
    "hapax.api.schemas": (
        "AskedSchemas",
        "ask_schemas",
        "combine_proofs",
        "combine_proofs",
        "compare_cases",
        "count_schemas",
        "export_schema_sheets",
        "export_schemas",
        "generate_schemas",
        "import_schema_sheets",
        "judge_schemas",
        "measure_association",
        "measure_robustness",
        "reword_schemas",
        "tabulate_schemas",
        "write_rewordings",
        "write_schemas",
    ),
    "hapax.api.sheets": (
        "export_sheets",
        "import_sheets",
    ),
    "hapax.engine.expansion.propose": ("ExpansionSettings",),
    "hapax.engine.inference.session": (
        "LimitExceeded",
        "QueryLimits",
    ),
    "hapax.engine.probability.answers": ("ProbabilityOptions",),
    "hapax.engine.query_options": ("QueryOptions",),
    "hapax.engine.search.settings": ("SearchSettings",),
    "hapax.engine.search.thresholds": ("CriticRule",),
    "hapax.engine.withdrawal": ("FactChange",),
    "hapax.evaluation.dataset.blocked": ("BlockList",),
    "hapax.evaluation.dataset.formats": ("Target",),
    "hapax.evaluation.dataset.selection": ("SelectionOptions",),
    "hapax.evaluation.leaderboard.board": ("LeaderboardOptions",),
    "hapax.evaluation.link.baselines.instruct": ("InstructSettings",),
    "hapax.evaluation.link.baselines.session": ("InstructOptions",),
    "hapax.evaluation.link.likelihood.run": ("LikelihoodOptions",),
    "hapax.evaluation.link.probing.run": ("ProbeOptions",),
    "hapax.evaluation.votes.soundness": ("SoundnessOptions",),
    "hapax.evaluation.report.build": ("ReportOptions",),
    "hapax.evaluation.votes.exporting": ("SheetExportOptions",),
    "hapax.evaluation.votes.items": ("SampleOptions",),
    "hapax.evaluation.votes.questions": ("SheetKind",),
    "hapax.evaluation.winograd.export": ("SchemaExportOptions",),
    "hapax.evaluation.winograd.generation": ("SchemaGenerationOptions",),
    "hapax.evaluation.winograd.people": ("SchemaSheetOptions",),
    "hapax.evaluation.winograd.runs": ("SchemaAskOptions",),
    "hapax.evaluation.winograd.asking": ("AskSettings",),
    "hapax.evaluation.winograd.prompts": ("PromptMethod",),
    "hapax.grammar.arguments": ("ArgumentRejected",),
    "hapax.grammar.errors": (
        "Diagnostic",
        "GoalRejected",
        "HapaxError",
        "RulesRejected",
    ),
    "hapax.grammar.explanations": ("FaultExplanation",),
    "hapax.grammar.rules": (
        "Library",
        "Rule",
    ),
    "hapax.kb.intake": ("FactsRejected",),
    "hapax.kb.mappings": ("TableMapping",),
    "hapax.kb.records": ("Distribution",),
    "hapax.kb.store": ("KnowledgeBase",),
    "hapax.llm_oracle.backend": ("OpeningOptions",),
    "hapax.llm_oracle.budget": (
        "Budget",
        "BudgetReached",
    ),
    "hapax.llm_oracle.protocols": ("Models",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AnswerOptions",
    "AnsweredQuestions",
    "Answers",
    "ArgumentRejected",
    "AskSettings",
    "AskedSchemas",
    "BlockList",
    "Budget",
    "BudgetReached",
    "BuildSettings",
    "CalibrationOptions",
    "ConsistencyOptions",
    "Contents",
    "CountRange",
    "CountedUnit",
    "CriticRule",
    "Derivation",
    "Diagnostic",
    "Distribution",
    "EntailmentChains",
    "EntailmentLimits",
    "EntailmentOptions",
    "EntailmentsJudged",
    "Evaluation",
    "Examination",
    "ExpansionFiles",
    "ExpansionSettings",
    "Explanation",
    "FactChange",
    "FactRules",
    "FactsRejected",
    "FaultExplanation",
    "FlippedLabels",
    "GoalRejected",
    "GraphImportOptions",
    "HapaxError",
    "InstructOptions",
    "InstructSettings",
    "KnowledgeBase",
    "LeaderboardOptions",
    "Library",
    "LikelihoodOptions",
    "LimitExceeded",
    "LinkOptions",
    "MinedRule",
    "MinedRules",
    "MiningOptions",
    "ModelListings",
    "Models",
    "OpeningOptions",
    "PredicateLinks",
    "ProbabilityOptions",
    "ProbeOptions",
    "Progress",
    "Promise",
    "PromptMethod",
    "ProposedRules",
    "QueryLimits",
    "QueryOptions",
    "QuestionWords",
    "Reconciliation",
    "ReportOptions",
    "ReportPage",
    "Rule",
    "RulesKept",
    "RulesRejected",
    "SampleOptions",
    "SchemaAskOptions",
    "SchemaExportOptions",
    "SchemaGenerationOptions",
    "SchemaSheetOptions",
    "ScorerOptions",
    "SearchAccount",
    "SearchResult",
    "SearchSettings",
    "SelectionOptions",
    "SheetExportOptions",
    "SheetKind",
    "SoundnessOptions",
    "SpendingLedger",
    "Statement",
    "Statements",
    "TableMapping",
    "Target",
    "TrainingOptions",
    "Verification",
    "add_facts",
    "answer_questions",
    "ask_schemas",
    "audit_consistency",
    "audit_entailments",
    "backup",
    "build_questions",
    "calibrate",
    "check_rules",
    "combine_proofs",
    "compare_cases",
    "compile_rules",
    "count_entailment_candidates",
    "count_schemas",
    "datasette_metadata",
    "derive",
    "doctor",
    "draw_audit",
    "draw_entailments",
    "entailment_chains",
    "evaluate_ablation",
    "evaluate_grid",
    "evaluate_instruction",
    "evaluate_likelihood",
    "evaluate_long_tail",
    "evaluate_probe",
    "evaluate_soundness",
    "evaluate_training",
    "expand_rules",
    "explain_fault",
    "export_facts",
    "export_schema_sheets",
    "export_schemas",
    "export_sheets",
    "export_statements",
    "format_rules",
    "generate_schemas",
    "import_entailment_graphs",
    "import_facts",
    "import_lint",
    "import_schema_sheets",
    "import_sheets",
    "judge_entailments",
    "judge_schemas",
    "keep_rules",
    "kept_rules",
    "leaderboard",
    "ledger",
    "link_predicates",
    "lint_rules",
    "list_models",
    "load_dataset",
    "load_rules",
    "measure_association",
    "measure_robustness",
    "merge",
    "mine_rules",
    "near_misses",
    "open_models",
    "parse_rules",
    "plan",
    "query",
    "read_entailments",
    "read_grid",
    "read_questions",
    "read_schemas",
    "reconcile",
    "report",
    "report_votes",
    "resolve_pronoun",
    "resolve_schema_pairs",
    "resolve_schemas",
    "restore",
    "restore_backup",
    "retract",
    "reword_schemas",
    "score_entailments",
    "seal",
    "search",
    "split_entailments",
    "stats",
    "store_audited_entailments",
    "store_entailments",
    "suggest_rules",
    "summarise_entailments",
    "tabulate_schemas",
    "train_entailment",
    "verbalise_rules",
    "verify",
    "why",
    "why_not",
    "with_entailments",
    "withdrawn_facts",
    "write_answers",
    "write_dataset",
    "write_entailment_splits",
    "write_question_pairs",
    "write_rewordings",
    "write_schemas",
]

# In a checkout the rooms are links in this folder. A zip archive, or git with core.symlinks=false, turns links into
# text files, `cli.py` among them, so the folder above, where the rooms are, comes first then.
_FOLDER = Path(__file__).resolve().parent
if not (_FOLDER / "engine").is_dir():
    __path__.insert(0, str(_FOLDER.parent))


def __getattr__(name: str) -> Any:
    """Load the module that defines a public name."""
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'hapax' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    if module.startswith("hapax.api.") and not isinstance(value, type):
        value = import_module("hapax.api.python_calls").python_call(value)
        value.__module__ = __name__  # pickle looks for the function where it says that it is
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
