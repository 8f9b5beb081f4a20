# Sourced by test.sh --long: what takes too long for every run. The summary goes to docs/long-run.md.

long_rows=
long_failed=
long_row() { long_rows+="| $1 | $2 | $3 |"$'\n'; }

long_fuzz() {
  local package target began last
  for package in $(go list ./...); do
    for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
      began=$SECONDS
      say "fuzzing $package $target for $fuzz_time"
      if go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzz_time" -fuzzminimizetime 20x "$package" >"$work/fuzz.log" 2>&1; then
        last=$(grep '^fuzz: elapsed' "$work/fuzz.log" | tail -1 | sed 's/^fuzz: //; s/ ([0-9]*\/sec)//')
      else
        long_failed+=" $target"
        last="**failed**: $(grep -A1 'Failing input' "$work/fuzz.log" | head -1 | sed 's/^ *//')"
        cat "$work/fuzz.log"
      fi
      say "$last"
      long_row "\`$target\` (${package##*fusion-serve/})" "$last" "$((SECONDS - began)) s"
    done
  done
}

long_repeat() {
  local began=$SECONDS
  timed "end to end, ten times" go test -count=10 -timeout 30m ./tests/e2e
  long_row "end-to-end tests, ten times" "all passed" "$((SECONDS - began)) s"
}

long_model() {
  local began=$SECONDS
  say "state machines under SIGKILL, $model_time for each place of states and effects"
  FUSION_MODEL_TIME=$model_time FUSION_BUILD_FLAGS=-race go test -count=1 -timeout 30m -v -run '^TestModel$' ./tests/model | tee "$work/model.log" | grep -v '^=== '
  long_row "state machines over three processes that are killed" "$(sed -n 's/.*: ran: //p' "$work/model.log" | paste -sd';' | sed 's/;/; /g')" "$((SECONDS - began)) s"
}

long_bench() {
  local began=$SECONDS
  timed "benchmarks against real servers" go run ./tests/bench -out docs/performance.md
  long_row "\`go run ./tests/bench\`" "see [performance.md](performance.md)" "$((SECONDS - began)) s"
  say "Go benchmarks"
  go test -run '^$' -bench . -benchmem $(go list ./... | grep -v /tests/) | tee "$work/bench.log"
}

long_run() {
  long_fuzz
  long_repeat
  long_model
  long_bench
  {
    echo "# The long run"
    echo
    echo "Written by \`./test.sh --long\` on $(date -u +%Y-%m-%d), $(go version | cut -d' ' -f3,4), $(nproc) cores."
    echo
    echo "| what | result | time |"
    echo "| --- | --- | --- |"
    printf '%s' "$long_rows"
    echo
    echo "## Go benchmarks"
    echo
    echo '```text printed by go test -bench'
    grep -E '^(pkg|Benchmark)' "$work/bench.log" || echo "none"
    echo '```'
  } >docs/long-run.md
  say "wrote docs/long-run.md"
  [ -z "$long_failed" ] || die "fuzzing failed:$long_failed (what failed is in testdata/fuzz now)"
}
