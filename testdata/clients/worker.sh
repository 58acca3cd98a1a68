#!/usr/bin/env bash
# A worker over HTTP with curl and jq: worker.sh QUEUE [JOBS]. It answers with the payload in capitals. See worker.py; this one
# sends no heartbeats, so its jobs end within the lease.
set -euo pipefail
url=$JOBLEDGER_URL/api/v1 queue=$1 left=${2:-1000000000}
me=$(jq -n --arg worker "bash-$$" --arg host "$(hostname)" --argjson pid $$ '{$worker, $host, $pid}')

letters=0123456789ABCDEFGHJKMNPQRSTVWXYZ

ulid() { # 50 bits for the milliseconds, 80 of chance
  local ms n text=""
  ms=$(date +%s%3N)
  for n in 45 40 35 30 25 20 15 10 5 0; do text+=${letters:$((ms >> n & 31)):1}; done
  for n in $(od -An -v -N16 -tu1 /dev/urandom); do text+=${letters:$((n & 31)):1}; done
  printf '%s' "$text"
}

send() { # METHOD PATH [BODY]: prints the answer; a lost one, or a busy server, is a reason to send it again
  local answer
  for _ in {1..30}; do
    answer=$(curl --silent --max-time 90 --request "$1" --header "@$auth" --header 'Content-Type: application/json' \
      --data-binary @- --write-out '\n%{http_code}' "$url$2" <<<"${3:-}") || true
    case ${answer##*$'\n'} in
      2??) printf '%s' "${answer%$'\n'*}"; return ;;
      000 | 429 | 50[2347]) sleep 1 ;;
      *) printf '%s\n' "$answer" >&2; return 1 ;;
    esac
  done
  return 1
}

auth=$(mktemp) && trap 'rm -f "$auth"' EXIT # a token is not an argument: others can see those
printf 'Authorization: Bearer %s\n' "$JOBLEDGER_API_TOKEN" >"$auth"
boot=$(ulid)
send PUT "/workers/$boot" "$(jq --arg q "$queue" '. + {queues: [$q]}' <<<"$me")" >/dev/null
while [ "$left" -gt 0 ]; do
  claim=$(send POST /claims "$(jq --arg boot "$boot" --arg q "$queue" --arg token "$(ulid)" \
    '. + {$boot, queues: [$q], tokens: [$token], lease: 60, wait: 30}' <<<"$me")")
  [ -n "$claim" ] || continue # nothing was ready
  id=$(jq -r '.claims[0].id' <<<"$claim") token=$(jq -r '.claims[0].lease_token' <<<"$claim")
  result=$(jq -j '.claims[0].payload' <<<"$claim" | tr '[:lower:]' '[:upper:]') # the work
  send PUT "/jobs/$id/claims/$token" "$(jq -n --arg result "$result" '{outcome: "succeeded", $result}')" >/dev/null
  left=$((left - 1))
done
send DELETE "/workers/$boot" >/dev/null
