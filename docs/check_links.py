"""Look at every page of a built site: do its links lead somewhere, and does it need the network?

python docs/check_links.py FOLDER

A link must lead to a file that is there, and its fragment to an element of that page; what a
browser loads by itself (scripts, styles, fonts, pictures) must be among the files of the site. Links
to other sites are not followed: the check needs no network.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
LOADED |= {"embed": "src", "object": "data"}
STYLE_LINKS = {"stylesheet", "preload", "icon", "prefetch", "modulepreload", "preconnect", "manifest"}
STYLE_URL = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(HTMLParser):
    """The names, the links and the loaded files of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names, links to, and loads."""
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]):
            self.loaded.append(given[LOADED[tag]])
        if tag == "link" and STYLE_LINKS & set(given.get("rel", "").split()):
            self.loaded.append(given.get("href", ""))
        self.loaded += [url for url, _ in STYLE_URL.findall(given.get("style", "")) if url]


def is_remote(url: str) -> bool:
    """Whether a browser would ask another machine for it."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https", "ws", "wss", "ftp") or (
        not parts.scheme and bool(parts.netloc)
    )


def faults(folder: Path) -> list[str]:
    """A sentence for every link that leads nowhere, and for all that would be fetched."""
    # What lies among the theme's own files is templates, which no link leads to.
    files = [file for file in sorted(folder.rglob("*.html")) if "_static" not in file.parts]
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    found = []
    for file, page in pages.items():
        where = file.relative_to(folder)
        for url in page.loaded:
            if is_remote(url):
                found.append(f"{where}: loads {url} from another machine.")
            elif not urlsplit(url).scheme and not target_of(file, url, folder).exists():
                found.append(f"{where}: loads {url}, which is not there.")
        for url in page.links:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = target_of(file, url, folder)
            name = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{where}: the link {url} leads to no file.")
            elif name and target in pages and name not in pages[target].names:
                found.append(f"{where}: the link {url} leads to no such place on its page.")
    for file in sorted(folder.rglob("*.css")):
        for pair in STYLE_URL.findall(file.read_text(encoding="utf-8", errors="replace")):
            url = pair[0] or pair[1]
            if is_remote(url):
                found.append(f"{file.relative_to(folder)}: loads {url} from another machine.")
    if not pages:
        found.append(f"{folder} has no pages; run: make docs")
    return found


def target_of(file: Path, url: str, folder: Path) -> Path:
    """The file that a link of a page means."""
    path = unquote(urlsplit(url).path)
    if not path:
        return file
    target = (folder / path.lstrip("/") if path.startswith("/") else file.parent / path).resolve()
    return target / "index.html" if target.is_dir() else target


def main() -> None:
    """Tell every fault, and end with 1 where there is one."""
    folder = Path(sys.argv[1]).resolve()
    found = faults(folder)
    for fault in found:
        print(fault, file=sys.stderr)
    if found:
        raise SystemExit(1)
    print(f"{folder}: every link leads somewhere, and nothing is fetched.")


if __name__ == "__main__":
    main()
