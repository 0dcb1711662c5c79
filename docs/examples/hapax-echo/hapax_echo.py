"""Models for Hapax that answer every question with the values in their name, such as `echo:butter,milk`."""

from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import CriticScore, Generation, LogLikelihood, ModelIdentity
from hapax.llm_oracle.reading.link_replies import render_values


class EchoModel:
    """Proposes its values, accepts every claim, and finds longer texts less likely."""

    def __init__(self, argument):
        self.identity = ModelIdentity(f"echo/{argument}", revision="1")
        self.values = argument.split(",")

    def generate(self, requests, parameters):  # noqa: ARG002  # it does not sample
        remaining = [[value for value in self.values if value not in request.excluded_values] for request in requests]
        return [Generation(render_values(values)) for values in remaining]

    def probabilities(self, claims):
        return [CriticScore(0.95) for _ in claims]

    def log_likelihoods(self, texts):
        return [LogLikelihood(-float(len(text)), len(text.split())) for text in texts]


def open_echo(request: ModelRequest) -> EchoModel:
    """Open the model once for all its roles."""
    return request.once(lambda: EchoModel(request.argument))


BACKEND = Backend(open=open_echo, argument="VALUE,...", roles=ALL_ROLES, abilities="echoes its values", price=FREE)
