"""Records are told together, once in a while, and by whichever keeper is there."""

import sys
import time

import pytest

from train_ledger.chaos import fleet
from train_ledger.chaos.webhook import Webhook
from train_ledger.config import Alerts, Config, Notify
from train_ledger.dash import Alert, Transition
from train_ledger.ledger import Journal, journal
from train_ledger.watch.console import Console
from train_ledger.watch.digest import Digest, is_digest
from train_ledger.watch.keeper import Keeper
from waiting import wait_until

NOTIFY = Notify(digest_urls=("json://127.0.0.1:1/digest",), urls=("json://127.0.0.1:1/page",))


def record(name, t, summary="…", **labels):
    alert = Alert(name, "record", {"run": "r42", **labels}, t, summary, 1.0)
    return Transition("fired", alert, t)


def digest_of(*transitions):
    digest = Digest()
    for transition in transitions:
        digest.take(transition)
    return digest


def test_one_message_counts_each_alert_and_says_where_and_when():
    message = digest_of(
        record("GpuClockLow", 100.0, rank="5", host="n1"),
        record("DataLoadingWait", 150.0, "r42: data took 12 %"),
        record("GpuClockLow", 7300.0, "r42: 900 MHz", rank="3", host="n0"),
    ).message(NOTIFY, "r42")
    assert message.title == "r42: on record: GpuClockLow ×2, DataLoadingWait ×1"
    assert message.body.splitlines() == [
        "GpuClockLow on ranks 3,5, host n0, n1: 2 times, first 1970-01-01 00:01:40Z, last 1970-01-01 "
        "02:01:40Z; the last: r42: 900 MHz",
        "DataLoadingWait: 1970-01-01 00:02:30Z; the last: r42: data took 12 %",
    ]
    assert message.level == "record"
    assert message.urls == NOTIFY.digest_urls, "not to the pager"
    assert is_digest(message.id)


def test_it_is_due_a_while_after_its_first_record_or_at_the_end_of_the_run():
    digest = digest_of(record("GpuClockLow", 100.0), record("GpuClockLow", 190.0))
    assert not digest.is_due(199.0, 100.0)
    assert digest.is_due(200.0, 100.0)
    assert digest.is_due(191.0, 100.0, finished=True)


def test_where_there_is_nothing_to_tell_nothing_is_due():
    digest = Digest()
    page = Alert("TrainingStepStalled", "page", {"run": "r42"}, 1.0, "…", 1.0)
    silenced = Alert("GpuClockLow", "record", {"run": "r42"}, 1.0, "…", 1.0, inhibited=True)
    ended = record("GpuClockLow", 1.0).alert
    for transition in (
        Transition("fired", page, 1.0),
        Transition("fired", silenced, 1.0),
        Transition("resolved", ended, 1.0),
    ):
        digest.take(transition)
    assert not digest.is_due(1e9, 1.0, finished=True)


def test_what_was_told_is_not_told_again():
    digest = digest_of(record("GpuClockLow", 100.0))
    digest.told("20261130T031205Z-TrainingStepStalled-open")
    assert digest.is_due(200.0, 100.0)
    digest.told(digest.message(NOTIFY, "r42").id)
    assert not digest.is_due(200.0, 100.0)


def test_what_came_from_a_log_cannot_add_lines():
    message = digest_of(record("NicErrors", 1.0, "a\nb\x1b[2J", host="n\n0")).message(NOTIFY, "r\n1")
    assert len(message.body.splitlines()) == 1
    assert "\n" not in message.title
    assert "\x1b" not in message.body


def keep(keeper, run_dir):
    """For three seconds, and until it has been told."""
    least_t = time.monotonic() + 3.0

    def told():
        keeper.turn()
        kinds = [entry["kind"] for entry in journal.read(run_dir.journal).entries]
        return "notification_done" in kinds and time.monotonic() > least_t

    wait_until(told, 120)
    keeper.close()


@pytest.mark.slow
def test_a_keeper_tells_what_an_earlier_one_put_on_record_once(tmp_path):
    now = time.time()
    made = fleet.write(tmp_path / "r42", hosts=1, ranks_per_host=2, start_t=now - 400)
    run_dir = made.run_dir
    book = Journal(run_dir.journal)
    for transition in (
        record("GpuClockLow", now - 300, rank="1"),
        record("GpuClockLow", now - 200, rank="1"),
    ):
        book.append({"t": transition.t, "kind": "alert_fired", "transition": transition.to_json()})
        resolved = Transition("resolved", transition.alert, transition.t + 50)
        book.append({"t": resolved.t, "kind": "alert_resolved", "transition": resolved.to_json()})
    book.close()
    with Webhook() as webhook:
        notify = Notify(digest_urls=(webhook.apprise_url,), digest_s=250.0)
        for _ in range(3):  # three keepers, one after the other; the first one tells
            keeper = Keeper(
                run_dir, Config(Alerts(), notify=notify), Console(lambda text: print(text, file=sys.stderr))
            )
            keep(keeper, run_dir)
        assert [body["title"] for body in webhook.received] == ["r42: on record: GpuClockLow ×2"]
    kinds = [entry["kind"] for entry in journal.read(run_dir.journal).entries]
    assert kinds.count("notification_intended") == kinds.count("notification_done") == 1
    assert "incident_opened" not in kinds, "a record opens no incident"
