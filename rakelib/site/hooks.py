"""Adapts docs/, which are written for GitHub, to MkDocs."""

import re
from pathlib import Path

SHELF = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
PAGE = re.compile(r"\[`?([^\]`]+)`?\]\(([\w-]+\.md)\)")
OUTSIDE = re.compile(r"\]\((?:\.\./([^)\s]+)|(schemas))\)")


def on_config(config):
    """The shelves of README.md are the navigation. A page is on the first that names it."""
    known = set()
    shelves = []
    for title, text in SHELF.findall(Path(config.docs_dir, "README.md").read_text()):
        pages = []
        for name, path in PAGE.findall(text):
            if path not in known:
                known.add(path)
                pages.append({name: path})
        shelves.append({title: pages})
    config.nav = [{"Overview": "README.md"}, *shelves]
    return config


def on_page_markdown(markdown, page, config, files):
    """Files outside of docs/ are on GitHub. `no-run` is for the specs."""
    markdown = re.sub(r"^```(\w+) [\w-]+$", r"```\1", markdown, flags=re.MULTILINE)
    main = f"{config.extra['repository']}/blob/main"
    return OUTSIDE.sub(lambda link: f"]({main}/{link[1] or 'docs/' + link[2]})", markdown)
