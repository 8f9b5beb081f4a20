#!/usr/bin/env bash
# Runs every check of this repository on a fresh machine: formatting, vet, staticcheck,
# all tests (also under the race detector), against a private PostgreSQL, a private Redis and the public MCP clients.
# It says what it installs and starts; what it starts ends with it. Once installed, it needs no network.
#
#   ./test.sh            everything
#   ./test.sh --update   rewrites golden files and generated pages instead, then runs nothing else
#   ./test.sh --long     everything, then each fuzz target for 60 s, benchmarks, the end-to-end
#                        tests ten times, state machines under SIGKILL for five minutes; a summary
#                        goes to docs/long-run.md
#   ./test.sh --bench    only the benchmarks against real servers; the tables go to docs/performance.md
#
# CI=true also runs the generators and fails when they change a file.
set -euo pipefail
cd "$(dirname "$0")"

staticcheck_version=v0.8.2
node_version=22.23.3     # used when the machine has no Node of at least node_least
node_least=22.19.0       # what the inspector asks for
fuzz_time=${FUSION_FUZZ_TIME:-60s} # of each target, with --long
model_time=${FUSION_MODEL_TIME:-60s} # of each variant of tests/model, with --long
cache=${FUSION_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fusion-serve}

update= long= bench=
for arg; do
  case $arg in
    --update) update=1 ;;
    --long) long=1 ;;
    --bench) bench=1 ;;
    *) echo "test.sh: unknown flag $arg (there are --update, --long and --bench)" >&2; exit 2 ;;
  esac
done

say() { printf '== %s\n' "$*"; }
die() { printf 'test.sh: %s\n' "$*" >&2; exit 1; }
. tests/machine.sh

work=$(mktemp -d "${TMPDIR:-/tmp}/fusion-serve-test.XXXXXX")
chmod 755 "$work"
stop_all() {
  local status=$?
  trap - EXIT
  stop_postgres
  stop_redis
  rm -rf "$work"
  exit "$status"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- what the tests need

need_go
start_postgres   # sets FUSION_TEST_POSTGRES and puts psql on PATH
start_redis      # sets FUSION_TEST_REDIS and puts redis-server on PATH

# The tests decide what the servers under test see of the environment.
unset DATABASE_URL

if [ -n "$bench" ]; then
  go run ./tests/bench -out docs/performance.md
  exit 0
fi

need_cc          # the race detector links C
need_haproxy     # puts haproxy on PATH
need_node        # sets FUSION_NODE
need_clients     # sets FUSION_NODE_MODULES
need_staticcheck # sets staticcheck
export FUSION_REQUIRE_SERVERS=1

# tree prints what git sees of the work tree, so that a test that rewrites a file is noticed.
tree() { git status --porcelain; git diff HEAD | cksum; }

# timed runs a command and says how long it took.
timed() {
  local began=$SECONDS name=$1
  shift
  say "$name"
  "$@"
  say "$name: $((SECONDS - began)) s"
}

# --- update

if [ -n "$update" ]; then
  timed "go generate" go generate ./...
  for package in $(packages_with_update_flag); do
    timed "go test $package -update" go test -count=1 "$package" -update
  done
  say "changed:"
  git status --short
  exit 0
fi

# --- checks

before=$(tree)

format() {
  local bad
  bad=$(git ls-files -co --exclude-standard '*.go' | grep -v /testdata/ | while read -r f; do [ ! -f "$f" ] || echo "$f"; done | xargs -r gofmt -l)
  [ -z "$bad" ] || die "gofmt would change: $bad (run gofmt -w on them)"
}
timed "gofmt" format
timed "go vet" go vet ./...
timed "staticcheck" "$staticcheck" ./...
[ -z "${CI:-}" ] || timed "go generate" go generate ./...

# Race: the packages whose values several goroutines share, and the real binary, built with
# -race, under the public clients.
timed "go test -race" go test -race -count=1 -timeout 8m $(go list ./engine/... ./presenters/... ./dsl/expr/...)
FUSION_BUILD_FLAGS=-race timed "end to end, binary built with -race" go test -count=1 -timeout 5m ./tests/e2e

[ -z "$long" ] || { . tests/long.sh; long_run; }

# go test's lines come last, so nothing below prints when all is well.
say "go test ./..."
go test -count=1 -timeout 10m ./...

if [ "$(tree)" != "$before" ]; then
  git status --short >&2
  [ -n "$long" ] && [ -z "$(git status --porcelain -- ':!docs/long-run.md' ':!docs/performance.md')" ] ||
    die "the run changed files of the tree (see above): commit what ./test.sh --update writes"
fi
