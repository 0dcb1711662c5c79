"""Settings of a search."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import Annotated, Any, Literal, get_args

from hapax.engine.certificates import Promise
from hapax.engine.gates.gates import (
    CRITIC,
    DEFAULT_RULE,
    TYPE,
    TYPE_FLOOR,
    CriticRule,
    FactThreshold,
    Gate,
    TypeThreshold,
    gates_in_order,
)
from hapax.engine.gates.inquiry import EMPTY_CALLS, FUNCTIONAL_SAMPLES
from hapax.engine.gates.released import MAX_TOKENS, TRIES
from hapax.engine.gates.score_maps import short_model_name
from hapax.engine.search.progress import Watcher
from hapax.engine.search.ranking import END_SHARE, KEEP_SHARE, EndSize
from hapax.grammar.arguments import checked
from hapax.grammar.dependencies import BEAM, Preset, Yield, Yields
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, check_ranges
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.writing.words import counted
from hapax.kb.records import MODEL_PROFILES, Distribution, ProfileRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import CallStatistics
from hapax.llm_oracle.critics.critic_probing import reads_any_words
from hapax.llm_oracle.critics.measures import Measure
from hapax.llm_oracle.journal import PROBE, Journal
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import GenerationParameters, Generator, Models, Structuring
from hapax.llm_oracle.questions.profile_probing import ENOUGH, MOST_TRIALS, PROBED_TOKENS, probe_profiles
from hapax.llm_oracle.questions.profiles import HAPAX, PAPER, PROFILES, RELEASED, Profile, ProfileName, find_profile
from hapax.llm_oracle.questions.prompts import read_prompt
from hapax.llm_oracle.reading.link_replies import MOST_LINES

Ranker = Literal["model", "random"]
Compat = Literal["paper", "released"]
Grouping = Literal["all", "predicate"]

ANSWER_TOKENS = GenerationParameters().max_tokens

THRESHOLDS = ("fact_threshold", "type_threshold")
"""Settings that are rules of thresholds; a run stores them as texts, and only if they are given."""
LINK_PROFILES: Mapping[Compat, Profile] = {"paper": PAPER, "released": RELEASED}
"""The prompt profiles of the ways of LINK."""


def distributions_of(wanted: str) -> tuple[Distribution, ...]:
    """The distributions that `head`, `long_tail` or `both` names."""
    return tuple(Distribution) if wanted == "both" else (Distribution(wanted),)


@checked
@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of a search. The defaults are Hapax's own; `compat` follows LINK's paper or LINK's released code.

    `beam`: partial substitutions kept at each step and distribution; None: all, and then the share cuts nothing
    either. `keep_share`: share at each end; None: a third of the complete substitutions, or under `compat` 75 % of
    those of each step, so that LINK's ends may overlap. `likelihood`: who ranks; `random` is for ablations. `measure`:
    by which it ranks (`Measure`); None: the first of `PREFERRED` that the ranker gives, and LINK's under `compat`.
    `plan`: None: the cheapest order, or the one that suits a model of which probing shows that it knows little.
    `answer_tokens`: tokens that a model may use for one list of values, its reasoning included. `enough`: statements
    per rule and distribution for which the last step stops to ask; None: all values are asked for. `rules_together`:
    number of rules that share batches, and so are cut together when a budget ends. `fact_threshold`, `type_threshold`:
    the critic's thresholds of P(yes), as `CriticRule.parse` reads them; None: Hapax's own. `profile`: name of the
    prompt profile that words the questions; None: that of `compat`, or the one that suits the model best. `calibrated`:
    the critic's scores are those of the knowledge base's calibration. `promise`: on the precision of the accepted
    facts, whose thresholds labelled facts decide; `statement_promise`: on that of the kept statements, by judged
    statements; `certify_by`: for all facts or statements together, or for each predicate or rule.
    """

    distributions: Annotated[
        tuple[Distribution, ...],
        Option(
            "Distribution to search.",
            name="distribution",
            default="both",
            choices=(*Distribution, "both"),
            read=distributions_of,
            in_any_folder=True,
        ),
    ] = (Distribution.HEAD, Distribution.LONG_TAIL)
    beam: Annotated[
        int | None,
        Option(
            "Combinations of values kept at each step; all: nothing is cut.",
            metavariable="NUMBER|all",
            none="all",
            least=1,
            in_any_folder=True,
        ),
    ] = BEAM
    keep_share: Annotated[
        float | None,
        Option(
            "Share at each end.  [default: a third; 0.75 of each step with --compat]",
            above=0,
            most=1,
            in_any_folder=True,
        ),
    ] = None
    # LINK's number of calls; each asks for 50 values.
    calls_per_question: Annotated[
        int, Option("Limit of calls per question.", name="calls", least=1, in_any_folder=True)
    ] = 4
    values_per_call: Annotated[
        int,
        Option(
            "Values asked for in one call.  [default: 50; 10 of smollm2 and gguf models; with --compat 50]",
            name="values",
            least=1,
            most=MOST_LINES,
            in_any_folder=True,
        ),
    ] = 50
    critic: bool = True
    likelihood: Ranker = "model"
    compat: Annotated[
        Compat | None, Option("Search as LINK's paper or its released code does.", in_any_folder=True)
    ] = None
    plan: Annotated[
        Preset | None,
        Option(
            "Order of the variables.  [default: cheapest, or premise-first of a model that knows little; "
            "with --compat link]",
            in_any_folder=True,
        ),
    ] = None
    seed: int = 0
    temperature: Annotated[float, Option("Sampling temperature.", least=0, in_any_folder=True)] = 0.7
    answer_tokens: Annotated[
        int,
        Option(
            "Tokens of one list of values, reasoning included.  [default: 1000; 25 a value of smollm2 and gguf models]",
            least=1,
            in_any_folder=True,
        ),
    ] = ANSWER_TOKENS
    enough: Annotated[
        int | None,
        Option(
            "Statements per rule and end that are enough: each step takes combinations in random order, and asks about "
            "no more of them than it needs.  [default: about all]",
            metavariable="NUMBER",
            least=1,
            in_any_folder=True,
        ),
    ] = None
    rules_together: int = 8
    fact_threshold: FactThreshold = None
    type_threshold: TypeThreshold = None
    profile: ProfileName = None
    calibrated: Annotated[
        bool,
        Option("Compare calibrated probabilities instead of raw scores (`hapax model calibrate`).", in_any_folder=True),
    ] = False
    promise: Promise | None = None
    statement_promise: Promise | None = None
    certify_by: Annotated[
        Grouping,
        Option(
            "One promise for all, or one for each predicate and each rule.",
            in_any_folder=True,
        ),
    ] = "all"
    measure: Annotated[
        str | None,
        Option(
            "Measure that ranks (docs/papers/long_tail.md).  [default: prior; paper for a model of whole texts, "
            "and with --compat]",
            choices=tuple(Measure),
            in_any_folder=True,
        ),
    ] = None

    def __post_init__(self) -> None:
        check_ranges(self)
        choices = (
            ("likelihood", Ranker),
            ("compat", Compat),
            ("plan", Preset),
            ("certify_by", Grouping),
        )
        for name, kind in choices:
            choice = getattr(self, name)
            if choice is not None and choice not in get_args(kind):
                raise HapaxError(f"{name} is {choice!r}. Choose {' or '.join(get_args(kind))}.")
        if self.profile is not None:
            find_profile(self.profile)  # raises for an unknown name
        if not self.distributions:
            raise HapaxError("There is no distribution to search. Set distributions to head, long_tail or both.")
        self._check_ranking()
        self._check_thresholds()

    def _check_ranking(self) -> None:
        if self.rules_together < 1:
            raise HapaxError(f"rules_together is {self.rules_together}. Set it to a whole number from 1.")
        if self.compat is None and self.share > 0.5:
            raise HapaxError(
                f"keep_share is {self.share:g}, but each end has at most half of the statements. Set it to at most 0.5."
            )
        if self.compat and self.enough:
            raise HapaxError(f"compat {self.compat} asks about all combinations. Leave out either it or enough.")
        if self.measure is not None and self.measure not in list(Measure):
            raise HapaxError(f"measure is {self.measure!r}. Choose {' or '.join(Measure)}.")
        if self.compat and self.measure not in (None, Measure.PAPER):
            raise HapaxError(f"compat {self.compat} ranks by LINK's own measure. Leave out either it or the measure.")

    def _check_thresholds(self) -> None:
        if self.compat and (self.fact_threshold or self.type_threshold):
            raise HapaxError(f"compat {self.compat} has LINK's own thresholds. Leave out either it or the thresholds.")
        if self.compat and (self.calibrated or self.promise or self.statement_promise):
            raise HapaxError(
                f"compat {self.compat} compares raw scores.",
                Remedy(
                    "Leave out either it or {}, {}, {}.",
                    Setting("settings.calibrated"),
                    Setting("settings.promise"),
                    Setting("settings.statement_promise"),
                ),
            )
        if self.promise and self.fact_threshold:
            raise HapaxError(
                "A promise has its own thresholds of facts.",
                Remedy("Leave out {} or {}.", Setting("settings.fact_threshold"), Setting("settings.promise")),
            )
        if (self.promise or self.statement_promise) and not self.critic:
            raise HapaxError(
                "Without a critic nothing can be promised.",
                Remedy("Leave out {} or {}.", Setting("settings.critic"), Setting("settings.promise")),
            )

    @property
    def order(self) -> Preset:
        """The order in which variables are searched."""
        return self.plan or "cheapest"

    @property
    def width(self) -> int:
        """Partial substitutions kept at most at each step and distribution."""
        return sys.maxsize if self.beam is None else self.beam

    @property
    def share(self) -> float:
        """Share of the substitutions at each end."""
        return self.keep_share if self.keep_share is not None else KEEP_SHARE if self.compat else END_SHARE

    @property
    def end_size(self) -> EndSize:
        """Size of the ends of the complete substitutions."""
        most = self.width if self.enough is None else min(self.width, self.enough)
        return EndSize(self.share, most, splits_ties=True, by_pairs=self.measure == Measure.PAIR)

    @property
    def needed(self) -> int:
        """Complete substitutions from which ends of the wanted size can be cut."""
        return sys.maxsize if self.enough is None else ceil(self.enough / self.share)

    @property
    def pool(self) -> int:
        """Partial substitutions kept at most at each step.

        Both sides of the ranking are kept whatever distributions are wanted, so that the long tail of a search for the
        long tail alone is that of a search for both.
        """
        if self.beam is None:
            return sys.maxsize
        return self.beam * (len(self.distributions) if self.compat else 2)

    @property
    def wanted_measure(self) -> Measure | None:
        """The measure of the ranker; None: the search chooses it by the ranker."""
        return Measure.PAPER if self.compat else None if self.measure is None else Measure(self.measure)

    @property
    def is_released(self) -> bool:
        """True if the search follows LINK's released code."""
        return self.compat == "released"

    def within(self, usual: Yield) -> Yield:
        """The yield of a question within the limits of the search, where its usual yield has none."""
        # LINK asks on after a short list.
        return usual.within(self.calls_per_question, self.values_per_call, EMPTY_CALLS if self.compat else 0)

    def yields(self, usual: Yields) -> Yields:
        """The costs and yields to expect of questions within these limits, where no answer is known."""
        sample = usual.functional
        # Each further sample has to agree.
        functional = replace(sample, calls=sample.calls * self.samples, accepted=sample.accepted**self.samples)
        return replace(usual, open=self.within(usual.open), keyed=self.within(usual.keyed), functional=functional)

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates in the order in which they judge a value."""
        return gates_in_order(self.compat)

    @property
    def rules(self) -> dict[str, CriticRule]:
        """Rules of thresholds by gate, where they differ from the gate's own."""
        if self.compat is not None:
            # LINK's threshold of types moves, Hapax's own is fixed.
            of_facts = CriticRule(released=self.is_released)
            return {CRITIC.name: of_facts, TYPE.name: CriticRule(floor=TYPE_FLOOR)}
        rules = {CRITIC.name: self.fact_threshold or DEFAULT_RULE}
        return rules if self.type_threshold is None else {**rules, TYPE.name: self.type_threshold}

    @property
    def has_own_thresholds(self) -> bool:
        """True if the thresholds are Hapax's own, which follow what the critic is worth."""
        return not (self.compat or self.fact_threshold or self.type_threshold or self.promise)

    @property
    def samples(self) -> int:
        """Samples of a question with one right value; a limit of one call holds for it, too, except in LINK's ways."""
        return FUNCTIONAL_SAMPLES if self.compat else min(FUNCTIONAL_SAMPLES, self.calls_per_question)

    @property
    def tries(self) -> int:
        """Calls for each of these samples until a reply has a value. Without `--compat` all stay within `--calls`."""
        if self.is_released:
            return TRIES
        return 1 if self.compat else self.calls_per_question // self.samples

    @property
    def parameters(self) -> GenerationParameters:
        """Parameters of requests for values."""
        is_default = self.answer_tokens == ANSWER_TOKENS
        tokens = MAX_TOKENS if self.is_released and is_default else self.answer_tokens
        return GenerationParameters(temperature=self.temperature, max_tokens=tokens, seed=self.seed)

    @property
    def words(self) -> Profile:
        """The prompt profile that words questions, unless one is chosen for the model."""
        if self.profile is not None:
            return find_profile(self.profile)
        return HAPAX if self.compat is None else LINK_PROFILES[self.compat]

    def to_json(self) -> dict[str, Any]:
        """The settings as the run record stores them."""
        settings = {**asdict(self), "distributions": [distribution.value for distribution in self.distributions]}
        # The run stores the checksums of what they mean for its knowledge base.
        for name in ("calibrated", "promise", "statement_promise", "certify_by"):
            del settings[name]
        settings["keep_share"] = self.share
        settings["max_statements"] = settings.pop("enough")  # its name in the runs of earlier versions
        # Runs of versions without these settings had what is now the default, and stay the same runs.
        for name in THRESHOLDS:
            rule = getattr(self, name)
            if rule is None:
                del settings[name]
            else:
                settings[name] = str(rule)
        if self.profile in (None, HAPAX.name):
            del settings["profile"]
        if self.answer_tokens == ANSWER_TOKENS:
            del settings["answer_tokens"]
        if self.compat is None:
            settings["ends"] = "disjoint"
        if self.wanted_measure in (None, Measure.PAPER):
            del settings["measure"]
        return settings


@dataclass(frozen=True)
class SearchJob:
    """Everything that a search needs.

    `rules` are those of `library` to search; the others may derive what these need. `journal` has the budget and the
    prices; None: calls are journaled in `kb` without a limit. `progress`: is called after each event.
    """

    library: Library
    rules: Sequence[Rule]
    kb: KnowledgeBase
    models: Models
    settings: SearchSettings = field(default_factory=SearchSettings)
    journal: Journal | None = None
    progress: Watcher | None = None


# --- the choice of a prompt profile -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProfileChoice:
    """The prompt profile of a run. `message` says how it was chosen; empty if there was no choice.

    `probes`: requests by which a search will choose another one, where this choice could ask nothing. `order`: in which
    the variables of rules are searched unless the settings say so; None: there is no reason to depart from the usual.
    """

    profile: str
    message: str = ""
    probes: int = 0
    order: Preset | None = None


@dataclass(frozen=True)
class ProfileChooser:
    """Chooses the profile for a knowledge model.

    `again`: probe although the knowledge base holds a choice. `can_ask`: the model answers at once, which a queue does
    not, and a plan must not ask.
    """

    kb: KnowledgeBase
    library: Library
    model: Generator
    journal: Journal
    again: bool = False
    can_ask: bool = True

    def choose(self, settings: SearchSettings) -> ProfileChoice:
        """The profile of a run with these settings. Raises BudgetReached if the budget does not allow to probe.

        Raises HapaxError for words that the model is not trained on.
        """
        identity = self.model.identity
        if settings.profile is not None:
            if identity.knows is not None and settings.profile != HAPAX.name:
                raise HapaxError(
                    f"{identity.name} is trained on the words of the profile {HAPAX.name} alone. Leave out the "
                    f"profile {settings.profile}, or choose another knowledge model."
                )
            note = self._fallback(settings.profile)
            return ProfileChoice(settings.profile, f"profile {settings.profile}{note}" if note else "")
        # A trained model that knows a single wording keeps it; stand-ins read those of LINK, too.
        if settings.compat is not None and identity.knows is None:
            return ProfileChoice(settings.words.name)
        if not reads_any_words(identity):
            return ProfileChoice(HAPAX.name)
        # A user who gives a model more room than usual has one that thinks aloud before it answers.
        room = settings.answer_tokens if settings.answer_tokens > SearchSettings().answer_tokens else PROBED_TOKENS
        return self._stored() or self._probed(room)

    def _stored(self) -> ProfileChoice | None:
        """The choice in the knowledge base, or the words in which it has answers of the model already."""
        name = self.model.identity.title
        record = None if self.again else self.kb.first(MODEL_PROFILES, model=name)
        if record is not None:
            order = _order(record.scores.get(record.profile, 0.0))
            message = f"profile {record.profile}, as chosen before for {short_model_name(name)}"
            return ProfileChoice(record.profile, message + _order_note(order), order=order)
        call = None if self.again else self.kb.first_knowledge_call(name)
        prompt = call.request.get("prompt") if call is not None else None
        # In another profile these answers would be paid for a second time.
        if isinstance(prompt, str) and read_prompt(prompt) and "to fill in the sentence '" in prompt:
            return ProfileChoice(
                HAPAX.name,
                f"profile {HAPAX.name}: the knowledge base has answers of {short_model_name(name)} in these "
                f"words. {Setting('probe_again')} chooses anew.",
            )
        return None

    def _probed(self, most_tokens: int) -> ProfileChoice:
        """The profile that brings the most known answers, which is stored and reported."""
        if not self.can_ask:
            return ProfileChoice(
                HAPAX.name,
                f"profile {HAPAX.name}: none was probed, because nothing is asked now. A search first asks it "
                f"up to {MOST_TRIALS} short questions more, once, to choose its profile ("
                f"{Setting('settings.profile')} names one), and searches premise first if it knows few of the "
                f"answers ({Setting('settings.plan')} names an order).",
                MOST_TRIALS,
            )
        inner = self.model.model if isinstance(self.model, JournaledGenerator) else self.model
        sent_before = self.journal.total.calls
        scores = probe_profiles(JournaledGenerator(inner, self.journal, role=PROBE), most_tokens)
        best = max(scores, key=lambda score: score.rank)
        # A model that knows none of the answers, such as a stand-in, is asked in the words that Hapax always used.
        best = best if best.known else scores[0]
        name = self.model.identity.title
        shares = {score.profile.name: round(score.share, 3) for score in scores}
        self.kb.add(MODEL_PROFILES, [ProfileRecord(name, best.profile.name, shares)])
        sent = counted(self.journal.total.calls - sent_before, "call")
        asked = self.journal.statistics.get(PROBE, CallStatistics()).calls
        others = [f"{score.profile.name} {score.known}" for score in scores if score is not best]
        order = _order(best.share)
        parts = (
            f"profile {best.profile.name}: {best.known} of {best.most} known answers ({sent})",
            ", ".join(others),
            self._fallback(best.profile.name).removeprefix(": "),
            f"{counted(asked, 'probe')} of this model in all",
        )
        message = "; ".join(filter(None, parts)) + _order_note(order)
        return ProfileChoice(best.profile.name, message, order=order)

    def _fallback(self, profile: str) -> str:
        """A note if the profile asks for JSON, and the model cannot be held to it."""
        is_json = any(candidate.json for candidate in PROFILES if candidate.name == profile)
        inner = self.model.model if isinstance(self.model, JournaledGenerator) else self.model
        if not is_json or (isinstance(inner, Structuring) and inner.structures):
            return ""
        return f": {self.model.identity.name} has no structured output, so words alone ask it for JSON"


def settled_job(job: SearchJob, journal: Journal) -> SearchJob:
    """The job with the prompt profile that its search uses."""
    chooser = ProfileChooser(job.kb, job.library, job.models.knowledge, journal)
    return replace(job, settings=settled(job.settings, chooser.choose(job.settings)))


def settled(settings: SearchSettings, choice: ProfileChoice) -> SearchSettings:
    """The settings with the chosen profile, and the order that suits the model unless they state one."""
    return replace(settings, profile=choice.profile, plan=settings.plan or choice.order or settings.order)


def _order(share: float) -> Preset | None:
    """The order of variables for a model that gave this share of the known answers; None for the usual one.

    A model that knows little lists members of what it has named, but seldom gives the same single answer twice, on
    which the cheapest order often rests.
    """
    # A model that knows none is a stand-in, which answers other questions than general ones.
    return "premise-first" if 0 < share < ENOUGH else None


def _order_note(order: Preset | None) -> str:
    return f"; it knows few of them, so rules are searched premise first ({Setting('settings.plan')})" if order else ""
