#!/bin/sh
# Makes a small ledger of what a program knows: fill.sh VERSION, with that program as jobledger in PATH, and JOBLEDGER_DB.
# VERSION is that of the schema, as SQLite counts. The ledgers here are made by it, each by the last program that had that
# schema. What a program made is for ever: for later versions lines are added here, and none is changed.
set -eu
export JOBLEDGER_ACTOR=cli:ada@example
jobledger init >/dev/null
new() { jobledger enqueue "$@"; }

new -q mail --key welcome-1 --tag customer=17 --priority 5 'Dear Ada, ü' >/dev/null
printf 'a\000b\377\n' | new -q mail --key bytes-1 --requires gpu --version v2 - >/dev/null
new -q mail --key poison-1 --max-attempts 1 --max-runtime 1m fails >/dev/null
new -q mail --key retry-1 --max-attempts 3 later >/dev/null
secret=$(new -q mail --key forget-1 secret)
jobledger cancel "$(new -q mail --key cancel-1 wrong)" --reason 'sent by hand' >/dev/null
jobledger work -q mail --drain --worker steady --capability gpu --version v2 -- sh -c '
    read -r line || :
    case $line in fails) exit 3 ;; later) [ "$JOBLEDGER_ATTEMPT" = 2 ] || exit 4 ;; esac
    printf "sent %s" "$line"' >/dev/null 2>&1 || :
jobledger erase "$secret" --reason 'she asked for it' >/dev/null
new -q sms --key held-1 'claimed, and never ended' >/dev/null
jobledger claim -q sms --worker lost --lease 5s >/dev/null
new -q sms --key ready-1 waits >/dev/null
new -q sms --key night-1 --run-at 2020-01-01T02:30:00Z 'is due' >/dev/null
new -q slow --key paused-1 'is paused' >/dev/null
jobledger pause -q slow --reason 'a new printer' >/dev/null

[ "$1" -ge 15 ] || exit 0
jobledger seal --init --reason 'for the audit' >/dev/null
jobledger queue set -q api --max-attempts 8 --backoff 'min 1s, max 1h, factor 2' >/dev/null
jobledger limit -q api --running 3 --per-group 2 --rate 100/1m --ageing 1m --reason 'three at a time' >/dev/null
jobledger schedule set nightly -q backup --cron '30 2 * * *' --zone Europe/Berlin --within 6h all >/dev/null
first=$(new -q api --group acme --key first-1 one)
new -q api --group acme --key second-1 --after "$first" two >/dev/null
new -q api --hold --key unblock-1 three >/dev/null
new -q api --unique-while queued --key page-17 four >/dev/null
jobledger claim -q api --worker lost --lease 5s >/dev/null

[ "$1" -ge 16 ] || exit 0
for n in $(seq 90); do echo '{"payload": "'"$n"'"}'; done | new -q bulk --jsonl - >/dev/null
jobledger work -q bulk --drain --worker bulk -- true >/dev/null 2>&1
jobledger archive --older-than 0s --logs remove >/dev/null
