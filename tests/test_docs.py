"""The pages say what is true."""

import ast
import re
import subprocess
import textwrap
from collections import Counter
from pathlib import Path

import configuration_page
import pytest

from train_ledger.config import Config, load
from train_ledger.run_dir import RunDir

ROOT = Path(__file__).parents[1]
BOTH = ("README.md", "README.zh-CN.md")
PAGES = [*BOTH, *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


def fenced(page, kind):
    """The blocks of a page in one language, those within lists, too."""
    found = re.findall(rf"^( *)```{kind}\n(.*?)^\1```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in found]


def test_the_page_of_keys_is_current():
    assert configuration_page.PAGE.read_text() == configuration_page.page()


def test_every_key_is_documented_with_its_default():
    page = configuration_page.page()
    assert "| `stall_floor_s` | 90 | " in page
    assert "| `gpu_price_per_hour` | none | " in page
    assert '| `kernel_log` | "auto" | ' in page


def test_a_key_without_words_is_told_of(monkeypatch):
    words = configuration_page.WORDS / "configuration.md"
    text = words.read_text().replace("| `stall_factor` |", "| `stall_fakctor` |")
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    with pytest.raises(ValueError, match=r"\['stall_factor', 'stall_fakctor'\]"):
        configuration_page.page()


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_configuration_are_ones(page, tmp_path):
    for block in fenced(page, "toml"):
        run = RunDir(tmp_path)
        run.config_file.write_text(block)
        assert load(run) != Config(), block


@pytest.mark.parametrize("page", PAGES)
def test_code_is_python_and_shell_is_shell(page):
    for block in fenced(page, "python"):
        ast.parse(block)
    for block in fenced(page, "sh"):
        done = subprocess.run(["bash", "-n"], input=block, text=True, capture_output=True, check=False)
        assert done.returncode == 0, f"{block}\n{done.stderr}"


def test_there_are_such_examples():
    counts = Counter(kind for page in PAGES for kind in ("toml", "python", "sh") for _ in fenced(page, kind))
    assert min(counts["toml"], counts["python"], counts["sh"]) > 5


def test_every_verb_of_the_readme_is_one():
    from train_ledger.cli.command_line import app

    verbs = {command.name or command.callback.__name__ for command in app.registered_commands}
    named = set(re.findall(r"^\| `(\w+)[ `]", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named - {"drill", "trace"} == verbs


def test_the_chinese_readme_has_the_same_verbs():
    rows = [
        re.findall(r"^\| (`.*?`(?:[,、] ?`.*?`)*) \|", (ROOT / name).read_text(), re.MULTILINE)
        for name in BOTH
    ]
    assert rows[0] == [row.replace("、", ", ") for row in rows[1]]


@pytest.mark.parametrize("name", BOTH)
def test_links_of_the_readme_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text()):
        assert "://" in target or (ROOT / target).exists(), target
