"""How does Alertmanager make one page of one incident?

`alertmanager_yml` writes its configuration from the same thresholds and inhibitions as the embedded judge
uses. All pages of a run are one group, whichever host they speak of, so that what joins an open incident is
an update of it at the next group interval; a record goes to a digest. What this rests on:

- A label that two alerts both lack is equal to Alertmanager, so that one fault of no known host would silence
  all others of no known host. Every inhibition asks both sides for a value of each label it compares.
- Alertmanager looks at inhibitions when a group is due. A fault that is there by then silences the stall that
  follows it; one that comes later than the group wait after the stall is an update to the stall's page.
- An alert that is over while it is silenced is never told to be over, and when it comes back Alertmanager
  takes it for told. So a restart that began while a page was open silences nothing until that page is over.
- Of an incident of several alerts each one that ends is an update, too; the last is told as resolved.
- Alertmanager forgets its alerts when it ends, and keeps what it told. One that is started anew while a fault
  silences a stall hears of the two up to a minute apart, since Prometheus says each again once a minute; if
  the stall comes first it is told, and the fault once more after it. (A shorter resend-delay of Prometheus'
  is no way out: an alert that was not said again for four times as long counts as resolved.)
- A digest of Alertmanager's lists what fires when it is due. What came and went in between stands in the
  digest of `watch` and in Prometheus' own series `ALERTS`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from train_ledger.config import Config
from train_ledger.dash.message import redacted
from train_ledger.dash.promql import duration
from train_ledger.dash.rule import Inhibition
from train_ledger.dash.rules import INHIBITIONS

__all__ = ["ALERTMANAGER_ARGUMENTS", "alertmanager_yml"]

ALERTMANAGER_ARGUMENTS = ("--cluster.listen-address=", "--data.maintenance-interval=1m")
"""With which arguments Alertmanager is to be started, beside its files and its address.

No port for a cluster: it would listen on every address. What was told is written down once a minute, not once
in a quarter of an hour, or an Alertmanager that was killed would tell it again.
"""

_NOT_AFTER_A_PAGE = 'paged=""'
"""The rules mark a restart that began while a page of its run was open."""

_SECRETS = "/etc/train-ledger"

_OTHER_WAYS = f"""\
pagerduty_configs:
  - routing_key_file: {_SECRETS}/pagerduty.key
    description: '{{{{ range .Alerts.Firing }}}}{{{{ .Annotations.summary }}}} {{{{ end }}}}'
slack_configs:
  - api_url_file: {_SECRETS}/slack.url
    channel: '#training'
    send_resolved: true
    title: '{{{{ .Status }}}}: {{{{ .CommonLabels.run }}}}'
    text: '{{{{ range .Alerts }}}}{{{{ .Annotations.summary }}}} {{{{ end }}}}'
email_configs:
  - to: oncall@example.org
    from: alertmanager@example.org
    smarthost: mail.example.org:587
    auth_username: alertmanager
    auth_password_file: {_SECRETS}/mail.password
    send_resolved: true
"""


def alertmanager_yml(
    config: Config,
    *,
    page_receiver: str = "",
    record_receiver: str = "",
    inhibitions: tuple[Inhibition, ...] = INHIBITIONS,
) -> str:
    """The text of an Alertmanager configuration (YAML).

    `page_receiver` and `record_receiver` are the addresses (http, https) of web hooks that take
    Alertmanager's JSON; "" for none, which leaves the receiver to be filled in by hand and says so in the
    file. What [notify] names are apprise's addresses, of which Alertmanager knows nothing.
    """
    lines = [
        "# Made by train-ledger from its table of rules. Intervals: train-ledger.toml.",
        f"# Start Alertmanager with {' '.join(ALERTMANAGER_ARGUMENTS)}",
        *_route(config),
        "receivers:",
        *_page_receiver(page_receiver, config),
        *_record_receiver(record_receiver),
        "inhibit_rules:",
    ]
    for inhibition in inhibitions:
        lines += _inhibit_rule(inhibition)
    return "\n".join(lines) + "\n"


def _route(config: Config) -> Iterator[str]:
    alerts = config.alerts
    digest = duration(config.notify.digest_s)
    yield "route:"
    yield "  receiver: page  # what has no level, too: a message too many is better than none"
    yield "  group_by: [run]"
    yield f"  group_wait: {duration(alerts.group_wait_s)}"
    yield f"  group_interval: {duration(alerts.group_interval_s)}"
    yield f"  repeat_interval: {duration(alerts.repeat_interval_s)}"
    yield "  routes:"
    yield "    - receiver: record"
    yield "      matchers: ['level=\"record\"']"
    yield f"      group_wait: {duration(alerts.group_interval_s)}"
    yield f"      group_interval: {digest}"
    yield f"      repeat_interval: {digest}"


def _page_receiver(url: str, config: Config) -> Iterator[str]:
    yield "  - name: page"
    if url:
        yield from _webhook(url, send_resolved=True)
    else:
        yield "    # NOBODY IS PAGED until one of these is filled in, or a web hook:"
        yield "    # webhook_configs: [{url: 'http://…', send_resolved: true}]"
    if kinds := sorted({redacted(each) for each in config.notify.urls}):
        yield f"    # [notify] urls ({', '.join(kinds)}) are for `train-ledger watch`; Alertmanager has no"
        yield "    # such addresses, so say here where the same people are reached."
    yield "    # Other ways to be woken. Keys and passwords stand in files that Alertmanager alone may read."
    yield from (f"    # {line}" for line in _OTHER_WAYS.splitlines())


def _record_receiver(url: str) -> Iterator[str]:
    yield "  - name: record"
    if url:
        yield from _webhook(url, send_resolved=False)
    else:
        yield "    # Nobody is told; records show in Grafana, in Alertmanager and in the digest of `watch`."


def _webhook(url: str, *, send_resolved: bool) -> Iterator[str]:
    yield "    webhook_configs:"
    yield f"      - url: {json.dumps(url)}"
    yield f"        send_resolved: {json.dumps(send_resolved)}"


def _inhibit_rule(inhibition: Inhibition) -> Iterator[str]:
    marks = [_NOT_AFTER_A_PAGE] if "TrainingRestarting" in inhibition.sources else []
    yield f"  - source_matchers: {_matchers(inhibition.sources, inhibition.equal, *marks)}"
    yield f"    target_matchers: {_matchers(inhibition.targets, inhibition.equal)}"
    yield f"    equal: [{', '.join(inhibition.equal)}]"


def _matchers(names: Iterable[str], equal: Iterable[str], *others: str) -> str:
    guards = [*(f"'{label}!=\"\"'" for label in equal), *(f"'{other}'" for other in others)]
    named = f"'alertname=~\"{'|'.join(sorted(names))}\"'"
    return f"[{', '.join([named, *guards])}]"
