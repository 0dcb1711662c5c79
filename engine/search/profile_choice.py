"""Chooses the prompt profile of a run: the given one, the stored one, or the one that probing finds best."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hapax.engine.questions.score_maps import short_model_name
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.dependencies import Preset
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library
from hapax.grammar.writing.words import counted
from hapax.kb.records import MODEL_PROFILES, ProfileRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import CallStatistics
from hapax.llm_oracle.critics.critic_probing import reads_any_words
from hapax.llm_oracle.journal import PROBE, Journal
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import Generator, Structuring
from hapax.llm_oracle.questions.profile_probing import ENOUGH, MOST_TRIALS, PROBED_TOKENS, probe_profiles
from hapax.llm_oracle.questions.profiles import HAPAX, PROFILES
from hapax.llm_oracle.questions.prompts import read_prompt


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
