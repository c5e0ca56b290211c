"""The runbook speaks of every alert, in both languages alike, and of no command that is none."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from train_ledger.cli import app
from train_ledger.dash import RULES, Rule
from train_ledger.dash.grafana.tables import ROWS
from train_ledger.ops.lint.runbook import anchors, metrics_named
from train_ledger.ops.runbook import LANGUAGES, language_of, runbook

TEXTS = {language: path.read_text(encoding="utf-8") for language, path in LANGUAGES.items()}
COMMANDS = {
    language: re.findall(r"(?:`|^ *)((?:train-ledger|ssh|curl|df|ls|cat) [^`\n]+)", text, re.MULTILINE)
    for language, text in TEXTS.items()
}
PARTS = {
    "en": ("**Means**", "**Five minutes**", "**Act**", "**Escalate**", "**Panels**"),
    "zh-CN": ("**含义**", "**五分钟**", "**处置**", "**升级**", "**面板**"),
}
FULL_WIDTH = {"；": "; ", "。": ". ", "：": ": "}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_alert_has_a_section_where_its_link_leads(rule: Rule, language: str) -> None:
    assert rule.runbook in anchors(TEXTS[language])
    section = runbook(language).sections[rule.name]
    assert section.level == rule.level
    if rule.level == "page":
        assert [part for part in PARTS[language] if part not in section.text] == []
        assert "```sh\n" in section.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_section_is_of_an_alert_that_is_none(language: str) -> None:
    assert set(runbook(language).sections) == {rule.name for rule in RULES}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rule", [it for it in RULES if it.level == "page"], ids=lambda rule: rule.name)
def test_a_section_names_the_panels_that_show_the_alert(rule: Rule, language: str) -> None:
    titles = [panel.title for row in ROWS for panel in row.panels if rule.name in panel.alerts]
    said = runbook(language).sections[rule.name].text.rpartition(PARTS[language][-1])[2]
    for wide, narrow in FULL_WIDTH.items():
        said = said.replace(wide, narrow)
    assert titles
    assert "; ".join(titles) + ". " in re.sub(r"\s+", " ", said)


def test_both_languages_have_the_same_commands_section_by_section() -> None:
    english, chinese = (runbook(language).sections for language in LANGUAGES)
    assert list(english) == list(chinese)
    for name, section in english.items():
        blocks = [re.findall(r"```sh\n(.*?)```", it.text, re.DOTALL) for it in (section, chinese[name])]
        assert blocks[0] == blocks[1], name
    assert sorted(COMMANDS["en"]) == sorted(COMMANDS["zh-CN"])


@pytest.mark.parametrize("command", sorted({it for it in COMMANDS["en"] if it.startswith("train-ledger")}))
def test_every_command_is_one_that_can_be_typed(command: str) -> None:
    _, verb, *arguments = shlex.split(command.partition(" | ")[0])
    verbs = typer.main.get_command(app).commands
    assert verb in verbs
    taken = verbs[verb]
    if hasattr(taken, "commands"):
        taken = taken.commands[arguments.pop(0)]
    options = {option for parameter in taken.params for option in parameter.opts}
    assert {argument for argument in arguments if argument.startswith("-")} <= options


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_within_it_lead_somewhere(language: str) -> None:
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXTS[language])) <= anchors(TEXTS[language])


def test_metrics_are_those_of_the_table() -> None:
    from train_ledger.fields import FIELDS

    known = {field.metric for field in FIELDS.values()}
    assert {name for name in metrics_named(TEXTS["en"]) if name.startswith("train_")} <= known


def test_a_name_is_found_however_it_is_written_and_close_ones_are_offered() -> None:
    book = runbook()
    found = book.section("trainingstepstalled")
    assert found is not None
    assert found.alert == "TrainingStepStalled"
    assert book.section("StepStalled") is None
    assert "TrainingStepStalled" in book.alike("StepStalled")


def test_what_an_alert_means_is_one_line_without_marks() -> None:
    for language in LANGUAGES:
        for section in runbook(language).sections.values():
            assert "\n" not in section.means
            assert not section.means.startswith("*")


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh-CN"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"}, "en"),
        ({"LC_ALL": "zh_TW"}, "zh-CN"),
        ({"LC_ALL": "", "LANG": "de_DE"}, "en"),
    ],
)
def test_the_language_is_that_of_the_locale(environment: dict[str, str], language: str) -> None:
    assert language_of(environment) == language
