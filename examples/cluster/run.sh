#!/usr/bin/env bash
# Runs three processes of one spec behind HAProxy, on this machine, until Ctrl-C.
#
#   psql "$DATABASE_URL" -f ../cart.schema.sql -f ../cart.seed.sql     # once
#   DATABASE_URL=postgres://... ./run.sh [SPEC [PORT [FIRST SECOND THIRD]]]
#
# SPEC is ../cart.cue if you name none, PORT (8080) is the proxy's, the others (8081 to 8083) are those
# of the processes. fusion-serve and haproxy must be on PATH. What the processes log goes to stderr.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
spec=${1:-$here/../cart.cue}
export PORT=${2:-8080} FIRST=${3:-8081} SECOND=${4:-8082} THIRD=${5:-8083}

die() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }

PATH=$PATH:/usr/sbin # where Debian puts haproxy
for program in fusion-serve haproxy; do
  command -v "$program" >/dev/null || die "$program is not on PATH"
done
case $#,${DATABASE_URL:-} in
  0,postgres://* | 0,postgresql://* | [!0]*) ;;
  *) die "set DATABASE_URL to that of a PostgreSQL database: three processes cannot share a database in memory" ;;
esac

children=()
stop() {
  local status=$?
  trap - EXIT
  trap '' INT TERM HUP
  [ ${#children[@]} = 0 ] || kill "${children[@]}" 2>/dev/null || true
  wait
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start PORT COMMAND... starts a program and waits until it takes connections on the port.
start() {
  local port=$1 child
  shift
  ! (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || die "port $port is in use: choose others (run.sh SPEC PORT FIRST SECOND THIRD)"
  "$@" >/dev/null &
  child=$!
  children+=("$child")
  until (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    kill -0 "$child" 2>/dev/null || die "$1 ended before it listened on port $port"
    sleep 0.1
  done
}

for port in "$FIRST" "$SECOND" "$THIRD"; do
  start "$port" fusion-serve serve "$spec" --http "127.0.0.1:$port"
done
start "$PORT" haproxy -db -f "$here/haproxy.cfg"
echo "three processes behind http://127.0.0.1:$PORT/mcp"
wait "${children[-1]}" || die "haproxy has ended"
