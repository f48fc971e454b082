# `ci/docker verbs`: pairs of unmodified RDMA programs in two ordinary containers, whose image is the Dockerfile of
# docs/verbs-for-everyone.md. Sourced by ci/docker, whose variables it reads.

verbs_addresses=(172.30.78.11 172.30.78.12)  # of the server's container, and of the client's
verbs_tries=20                               # of a client whose server does not listen yet

build_library() {
  if [[ -z "$programs" ]]; then
    ci/setup --for test
    # shellcheck disable=SC2206  # startup options are a list
    local bazel=(bazel ${BAZEL_STARTUP_OPTIONS:-}) package=lib/verbs/kernel/preload
    "${bazel[@]}" build --config=opt --show_result=0 --ui_event_filters=-info --noshow_progress //$package:libtokamak-verbs.so
    programs=$("${bazel[@]}" info --config=opt --ui_event_filters=-info bazel-bin)/$package
  fi
  mkdir "$work/verbs"
  cp "$programs/libtokamak-verbs.so" "$work/verbs"
}

# The document's Dockerfile as it is, but for the base.
build_verbs_image() {
  sed -n '/^FROM debian/,/^```/p' docs/verbs-for-everyone.md | sed -e '/^```/d' -e "s|^FROM .*|FROM $base|" >"$work/verbs/Dockerfile"
  local options=(--tag "$image")
  if own_daemon; then options+=(--network host); fi
  DOCKER_BUILDKIT=1 docker build --progress plain "${options[@]}" "$work/verbs" >"$work/build.log" 2>&1 \
    || { tail -n 30 "$work/build.log" >&2; die "the image of docs/verbs-for-everyone.md did not build"; }
}

make_verbs_network() {
  verbs_network="$tag-verbs"
  if "$host_network"; then
    verbs_network=host verbs_addresses=(127.0.0.1 127.0.0.2)
  else
    docker network create --internal --subnet 172.30.78.0/24 "$verbs_network" >/dev/null
  fi
}

# What `docker run` is told beside the program: nothing that gives a container more than any other has.
container_options() {  # server or client, address
  verbs_options=(--name "$tag-$1" --network "$verbs_network" --read-only --tmpfs /tmp --cap-drop ALL
    --security-opt no-new-privileges --env "TOKAMAK_VERBS=address=$2")
  "$host_network" || verbs_options+=(--ip "$2")
}

look_inside() {
  container_options look "${verbs_addresses[0]}"
  local inside
  inside=$(docker run --rm "${verbs_options[@]}" "$image" sh -c \
    'echo "user $(id -u), capabilities $(grep CapEff /proc/self/status | cut -f2), devices $(ls /dev/infiniband 2>/dev/null)"')
  [[ "$inside" == "user 1000, capabilities 0000000000000000, devices " ]] || die "the containers have $inside"
  say "containers: user 1000, no capabilities, no /dev/infiniband, a read-only root"
}

# Both programs must end with exit code 0; without forwarding, Docker warns of networks that work all the same. The line that says most, by a pattern, is shown.
run_verbs_pair() {  # pattern, server's words, client's words
  local code said tries=0
  container_options server "${verbs_addresses[0]}"
  # shellcheck disable=SC2086  # words
  docker run --detach "${verbs_options[@]}" "$image" $2 >"$work/run.log" 2>&1 || { tail -n 5 "$work/run.log" >&2; die "$2 did not start"; }
  container_options client "${verbs_addresses[1]}"
  while code=0; do
    # shellcheck disable=SC2086  # words
    said=$(timeout 60 docker run --rm "${verbs_options[@]}" "$image" $3 2>&1) || code=$?
    if (( code == 0 || ++tries == verbs_tries )) || [[ -z "$(docker ps --quiet --filter "name=$tag-server")" ]]; then break; fi
  done
  (( code == 0 )) || { echo "$said" | tail -n 5 >&2; docker logs --tail 5 "$tag-server" >&2; die "$3: exit code $code"; }
  code=$(timeout 60 docker wait "$tag-server") || die "$2 does not end"
  (( code == 0 )) || { docker logs "$tag-server" 2>&1 >/dev/null | tail -n 5 >&2; die "$2: exit code $code"; }
  docker rm "$tag-server" >/dev/null
  say "$3: $(grep -E "$1" <<<"$said" | tail -n 1 | xargs)"
}

run_verbs_pairs() {
  local server=${verbs_addresses[0]}
  run_verbs_pair '^ *65536 ' "ib_write_bw -F" "ib_write_bw -F $server"
  run_verbs_pair '^ping data' "rping -s -a $server -C 10 -v" "rping -c -a $server -C 10 -v"
  run_verbs_pair 'usec/iter' "ibv_rc_pingpong -g 0 -c" "ibv_rc_pingpong -g 0 -c $server"
}

# The last step of the document's workflow, in one container.
run_workflow() {
  local script said
  script=$(sed -n '/^      - run: |/,/^```/p' docs/verbs-for-everyone.md | sed -e '1d;/^```/d')
  said=$(timeout 120 docker run --rm --name "$tag-workflow" --network none --read-only --tmpfs /tmp --cap-drop ALL \
    --security-opt no-new-privileges --workdir /usr/local/lib "$image" bash -ec "$script" 2>&1) \
    || { echo "$said" | tail -n 5 >&2; die "the workflow of docs/verbs-for-everyone.md failed"; }
  say "the workflow's last step: $(grep -E '^ *65536 ' <<<"$said" | tail -n 1 | xargs)"
}
