#!/bin/sh
# The tests replay alert rules through a real Prometheus and Alertmanager and look at the page in a real
# Chromium. Where we may, they are installed; where not, one line says what is missing, and those tests are
# skipped by name.
set -u
missing=""
command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
command -v alertmanager >/dev/null 2>&1 || command -v prometheus-alertmanager >/dev/null 2>&1 || missing="$missing prometheus-alertmanager"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    # A failed refresh may still leave usable lists; the install decides.
    apt-get update -qq >/dev/null || true
    # shellcheck disable=SC2086
    if apt-get install -y -qq --no-install-recommends -o Dpkg::Options::=--force-confold $missing >/dev/null; then
        exit 0
    fi
fi
echo "not installed, so their tests are skipped: install with: apt-get install --no-install-recommends$missing"
