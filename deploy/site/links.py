"""Has links from the documentation to other files of the tree lead to the repository, since the site has only the documentation."""

import re


def on_page_markdown(markdown, page, config, files):
    return re.sub(r"\]\(\.\./([^)]+)\)", lambda m: f"]({config.repo_url.rstrip('/')}/blob/main/{m[1]})", markdown)
