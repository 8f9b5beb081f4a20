# Sourced by test.sh: finds or installs what the tests need, and starts the servers.
# Each need_ function prints what it installs; packages come from apt-get, npm and the Go module proxy.

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# apt_install NAME... installs Debian packages.
apt_install() {
  command -v apt-get >/dev/null || die "there is no apt-get here: install $* by hand"
  as_root true 2>/dev/null || die "$* must be installed: run 'apt-get install $*' as root, or test.sh as root or with a sudo that asks no password"
  say "installing with apt-get: $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >"$work/apt.log" 2>&1 || true # an old list may do
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >>"$work/apt.log" 2>&1 || {
    tail -20 "$work/apt.log" >&2
    die "apt-get could not install $*"
  }
}

need_go() {
  command -v go >/dev/null || die "Go is missing: install the version that go.mod names"
  say "$(go version)"
}

need_cc() {
  export CGO_ENABLED=1
  command -v "$(go env CC)" >/dev/null || apt_install gcc libc6-dev
}

# --- PostgreSQL

# find_postgres prints the folder of the newest server programs.
find_postgres() {
  local folder
  folder=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t/ -k5 -n | tail -1)
  if [ -z "$folder" ] && command -v initdb >/dev/null; then
    folder=$(dirname "$(command -v initdb)")
  fi
  [ -n "$folder" ] && [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ] && [ -x "$folder/psql" ] && echo "$folder"
}

install_postgres() {
  # The package would also make and start a cluster of the machine's own; we want the programs only.
  local conf=/etc/postgresql-common/createcluster.d/fusion-serve-test.conf
  apt_install postgresql-common
  as_root mkdir -p "${conf%/*}"
  echo 'create_main_cluster = false' | as_root tee "$conf" >/dev/null
  apt_install postgresql
  as_root rm -f "$conf"
}

# The server refuses to run as root.
as_postgres() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && exec setpriv --reuid=postgres --regid=postgres --clear-groups -- env HOME=/ "$@")
  else
    (cd / && exec "$@")
  fi
}

postgres_folder=
start_postgres() {
  local programs port try
  programs=$(find_postgres) || { install_postgres && programs=$(find_postgres); } || die "there are no PostgreSQL server programs"
  postgres_folder=$work/postgres
  mkdir "$postgres_folder"
  if [ "$(id -u)" = 0 ]; then
    id postgres >/dev/null 2>&1 || as_root useradd --system --no-create-home postgres
    chown postgres: "$postgres_folder"
  fi
  as_postgres "$programs/initdb" -D "$postgres_folder/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync \
    >"$work/initdb.log" 2>&1 || { cat "$work/initdb.log" >&2; die "initdb did not succeed"; }
  # A free port: tried at random below the range that clients get theirs from.
  for try in 1 2 3 4 5 6 7 8; do
    port=$((20000 + RANDOM % 12000))
    # Durability is of no use to data that the next line of a test drops.
    if as_postgres "$programs/pg_ctl" -D "$postgres_folder/data" -s -w -t 60 -l "$postgres_folder/log" start -o \
      "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=300 -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c timezone=UTC" \
      >"$work/pg_ctl.log" 2>&1; then
      postgres_stop=("$programs/pg_ctl" -D "$postgres_folder/data" -s -m immediate stop)
      export PATH=$programs:$PATH
      export FUSION_TEST_POSTGRES=postgres://postgres@127.0.0.1:$port/postgres
      say "started $("$programs/postgres" --version) on 127.0.0.1:$port, data in $postgres_folder"
      return
    fi
  done
  cat "$work/pg_ctl.log" "$postgres_folder/log" >&2
  die "PostgreSQL did not start"
}

postgres_stop=()
stop_postgres() {
  [ ${#postgres_stop[@]} = 0 ] || as_postgres "${postgres_stop[@]}" >/dev/null 2>&1 || true
}

# --- Redis

# need_redis puts redis-server on PATH. Debian's package of that name would also start a server of
# the machine's own. The program is the one that redis-tools calls redis-check-rdb, and it looks
# at the name that it is called by.
need_redis() {
  command -v redis-server >/dev/null && return
  command -v redis-check-rdb >/dev/null || apt_install redis-tools
  mkdir "$work/programs"
  ln -s "$(command -v redis-check-rdb)" "$work/programs/redis-server"
  export PATH=$work/programs:$PATH
  redis-server --version >/dev/null 2>&1 || die "there is no redis-server: install it by hand"
}

redis_pid=
start_redis() {
  local port try folder=$work/redis
  need_redis
  mkdir "$folder"
  for try in 1 2 3 4 5 6 7 8; do
    port=$((20000 + RANDOM % 12000))
    # Each test has a logical database, so there are many. Nothing is kept on disk.
    redis-server --port "$port" --bind 127.0.0.1 --databases 512 --save '' --appendonly no --dir "$folder" \
      --daemonize no >"$folder/log" 2>&1 &
    redis_pid=$!
    if redis_answers "$port"; then
      export FUSION_TEST_REDIS=redis://127.0.0.1:$port
      say "started Redis $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/') on 127.0.0.1:$port"
      return
    fi
    stop_redis
  done
  cat "$folder/log" >&2
  die "Redis did not start"
}

# redis_answers PORT waits until the started server takes connections; it ends by itself when
# the port is another one's.
redis_answers() {
  local tries
  for ((tries = 0; tries < 300; tries++)); do
    kill -0 "$redis_pid" 2>/dev/null || return 1
    grep -qs 'Ready to accept connections' "$work/redis/log" && return 0
    sleep 0.1
  done
  return 1
}

stop_redis() {
  [ -z "$redis_pid" ] || { kill -9 "$redis_pid" && wait "$redis_pid"; } 2>/dev/null || true
  redis_pid=
}

# --- HAProxy

# need_haproxy puts haproxy on PATH. Debian's package would also start one of the machine's own, so
# only the libraries that it needs are installed, and the program is taken out of the package.
need_haproxy() {
  local folder=$cache/haproxy
  export PATH=$PATH:/usr/sbin:$folder/usr/sbin
  if ! haproxy -v >/dev/null 2>&1; then
    command -v apt-get >/dev/null || die "there is no haproxy and no apt-get here: install haproxy by hand"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >"$work/apt.log" 2>&1 || true
    mkdir "$work/haproxy"
    (cd "$work/haproxy" && apt-get download -qq haproxy >>"$work/apt.log" 2>&1) || { tail -20 "$work/apt.log" >&2; die "apt-get could not download haproxy"; }
    apt_install $(dpkg-deb -f "$work"/haproxy/*.deb Depends | tr ',' '\n' | sed 's/[(|].*//' | grep '^ *lib')
    say "taking haproxy out of its package, into $folder"
    rm -rf "$folder"
    mkdir -p "$cache"
    dpkg-deb -x "$work"/haproxy/*.deb "$folder"
  fi
  haproxy -v >/dev/null 2>&1 || die "haproxy does not run: install it by hand"
  say "$(haproxy -v | head -1)"
}

# --- Node and the public MCP clients

# at_least A B tells whether version A is not below B.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

need_npm() { command -v npm >/dev/null || apt_install npm; }

need_node() {
  local own folder=$cache/node-$node_version machine
  if own=$(command -v node) && at_least "$("$own" -p process.versions.node)" "$node_least"; then
    export FUSION_NODE=$own
  else
    case $(uname -m) in
      x86_64) machine=x64 ;;
      aarch64 | arm64) machine=arm64 ;;
      *) die "install Node $node_least or newer: npm has no build for $(uname -m)" ;;
    esac
    export FUSION_NODE=$folder/node_modules/node-linux-$machine/bin/node
    if [ ! -x "$FUSION_NODE" ]; then
      need_npm
      say "installing Node $node_version with npm into $folder"
      mkdir -p "$cache"
      npm_into "$folder" npm install --no-save --no-package-lock "node-linux-$machine@$node_version"
    fi
  fi
  say "Node $("$FUSION_NODE" -p process.versions.node)"
}

# npm_into FOLDER COMMAND... runs an npm command in a new folder and gives it its name only
# when all went well, so that an interrupted run leaves no half folder behind.
npm_into() {
  local folder=$1 half=$1.$$
  shift
  rm -rf "$half"
  mkdir -p "$half"
  cp tests/e2e/package.json tests/e2e/package-lock.json "$half"
  [ "$2" = ci ] || rm "$half"/package*.json
  (cd "$half" && "$@" --ignore-scripts --no-audit --no-fund --loglevel=error) || { rm -rf "$half"; die "npm could not install into $folder"; }
  rm -rf "$folder"
  mv "$half" "$folder"
}

need_clients() {
  local folder
  folder=$cache/clients-$(cat tests/e2e/package.json tests/e2e/package-lock.json | cksum | cut -d' ' -f1)
  if [ ! -d "$folder" ]; then
    need_npm
    say "installing the MCP clients of tests/e2e/package.json with npm into $folder"
    mkdir -p "$cache"
    PATH=$(dirname "$FUSION_NODE"):$PATH npm_into "$folder" npm ci
  fi
  export FUSION_NODE_MODULES=$folder/node_modules
}

# --- staticcheck, built with the Go that is used

need_staticcheck() {
  local folder
  folder=$cache/staticcheck-$staticcheck_version-$(go env GOVERSION)
  staticcheck=$folder/staticcheck
  if [ ! -x "$staticcheck" ]; then
    say "building staticcheck $staticcheck_version into $folder"
    (cd / && GOFLAGS= GOBIN=$folder go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck_version") || die "staticcheck could not be built"
  fi
}

# packages_with_update_flag prints the packages whose tests know -update.
packages_with_update_flag() {
  git grep -lE --untracked 'flag\.Bool\("update"' -- '*_test.go' | xargs -r -n1 dirname | sort -u | sed 's,^,./,'
}
