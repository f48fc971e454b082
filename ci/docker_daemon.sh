# The Docker daemon that ci/docker works with: one that runs already, or a private one. Sourced by ci/docker, whose `work`, `tag`
# and `keep` it reads.
#
# A private daemon changes nothing of the host's network: no bridge of its own, no packet filter, no forwarding. Networks
# that are asked for exist while they are used. Its processes end with it, and it ends with ci/docker.

daemon=""           # process id of the private one
compose_program=()  # docker compose, or docker-compose

own_daemon() { [[ -n "$daemon" ]]; }
daemon_answers() { command -v docker >/dev/null && docker version >/dev/null 2>&1; }

find_compose() {
  if docker compose version >/dev/null 2>&1; then
    compose_program=(docker compose)
  elif command -v docker-compose >/dev/null; then
    compose_program=(docker-compose)
  else
    die "docker answers, but there is no docker compose: install Debian's docker-compose or Docker's compose plugin"
  fi
}

find_daemon() {
  if daemon_answers; then
    say "daemon: the one that runs, $(docker version --format '{{.Server.Version}}')"
  else
    start_daemon
    say "daemon: a private one, $(docker version --format '{{.Server.Version}}')," \
      "storage $(docker info --format '{{.Driver}}')"
  fi
  find_compose
}

start_daemon() {
  (( EUID == 0 )) || unable "no Docker daemon answers, and only root can start one: run as root, or start Docker"
  ci/setup --for docker
  # Debian's client fits Debian's daemon; another in PATH may be years newer. Nor does the user's configuration count.
  export PATH="/usr/bin:/usr/sbin:$PATH" DOCKER_HOST="unix://$work/docker.sock" DOCKER_CONFIG="$work/config"
  unset DOCKER_CONTEXT DOCKER_TLS_VERIFY
  # A setting without a flag; else a key would stay in /etc/docker.
  echo "{\"deprecated-key-path\": \"$work/key.json\"}" >"$work/daemon.json"
  local with_us=(setpriv --pdeathsig TERM)
  if "$keep"; then with_us=(setsid); fi
  "${with_us[@]}" dockerd --config-file "$work/daemon.json" \
    --host "$DOCKER_HOST" --pidfile "$work/docker.pid" --data-root "$work/data" --exec-root "$work/exec" \
    --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
    --cgroup-parent "/$tag" --exec-opt native.cgroupdriver=cgroupfs >"$work/dockerd.log" 2>&1 &
  daemon=$!
  grep -q -m1 'API listen on' < <(exec timeout 60 tail --pid="$daemon" -n +1 -f "$work/dockerd.log") \
    || { tail -n 5 "$work/dockerd.log" >&2; unable "dockerd did not start"; }
}

# Stops a private daemon; then its socket, control groups and mounts are gone.
stop_daemon() {
  own_daemon || return 0
  local pid=$daemon code=0
  daemon=""
  kill "$pid" && wait "$pid" || code=$?
  (( code == 0 )) || { echo "ci/docker: dockerd ended with code $code" >&2; return 1; }
  find /sys/fs/cgroup -depth -type d -path "*/$tag*" -exec rmdir {} + || return 1
  # A container on the host's network leaves the name of its namespace mounted.
  awk -v ours="$work/" 'index($2, ours) == 1 { print $2 }' /proc/mounts | sort --reverse | xargs --no-run-if-empty umount
}
