"""The documentation is one site, and none of its links leads nowhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ZENSICAL = Path(sys.executable).with_name("zensical")
PAGES = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)#\s]+)(?:#([\w-]+))?\)")


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def _in_nav(entries: object) -> set[str]:
    if isinstance(entries, str):
        return {entries}
    values = entries.values() if isinstance(entries, dict) else entries
    return {page for value in values for page in _in_nav(value)}  # type: ignore[attr-defined]


def test_every_page_is_in_the_table_of_contents() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert _in_nav(site["nav"]) == {str(page) for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_leads_somewhere(page: Path) -> None:
    path = DOCS / page
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        leads_to = (path.parent / target).resolve()
        assert leads_to.exists(), f"{page}: {target}"
        assert leads_to.is_relative_to(DOCS), f"{page}: {target} is not on the site"
        if anchor and leads_to.suffix == ".md":
            assert anchor in anchors(leads_to.read_text(encoding="utf-8")), f"{page}: {target}#{anchor}"


def test_the_commands_are_those_of_this_version() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "cli_page.py"), "--check"], check=False, cwd=ROOT
    )
    assert done.returncode == 0, "docs/cli.md is not current: python tools/cli_page.py"


@pytest.mark.slow
@pytest.mark.skipif(not ZENSICAL.exists(), reason="zensical is not installed")
def test_the_site_is_built(tmp_path: Path) -> None:
    for name in ("docs", "mkdocs.yml"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    done = subprocess.run(
        [str(ZENSICAL), "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Five questions" in (tmp_path / "build" / "site" / "index.html").read_text()
