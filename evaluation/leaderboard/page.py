"""A result as one HTML page without external resources and scripts."""

from __future__ import annotations

from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from hapax.evaluation.shared.results import ExperimentResult


def result_page(title: str, result: ExperimentResult) -> str:
    """Render the tables and notes of a result; all texts are escaped."""
    environment = Environment(
        loader=PackageLoader("hapax.evaluation.leaderboard", "."),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelled name fails instead of leaving a gap
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = resources.files("hapax.evaluation.leaderboard").joinpath("style.css").read_text("utf-8")
    return environment.get_template("page.html.jinja").render(title=title, result=result, style=style)
