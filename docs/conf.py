"""The docs as a site: `make site` builds it into build/site, to be read without a network."""

project = "Hapax"
project_copyright = "Hapax authors"
html_title = "Hapax"

# The whole repository is the source, so that links from page to page are the same here and in a checkout.
include_patterns = [
    "docs/*.md",
    "docs/*/*.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "benchmarks/README.md",
    "editors/vscode/README.md",
    "llm_oracle/**/README.md",
]
root_doc = "docs/index"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_theme_options = {"source_edit_link": ""}
html_copy_source = False
html_show_sphinx = False
# Not lexed: rules and the text that commands print.
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]
