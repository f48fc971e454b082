#!/bin/bash
# Packets of one device reach the other over the wire: rping within a guest, or from every other guest to the first. Within a guest of
# SoftiWARP also when the link was down in between: TCP, unlike Soft-RoCE, goes where routes lead.
#
# Runs in a guest of ci/softroce only.
set -euo pipefail
rounds=20
# When all is said rping may hang instead of ending, over a link that loses packets (seen once). So it is ended then, and what counts is
# what arrived.
patience=90
expect_ended() {  # exit code
  if (( $1 == 124 )); then echo "rping did not end by itself"; else (( $1 == 0 )); fi
}
serve() {  # own address
  timeout "$patience" rping -s -a "$1" -C "$rounds" &
  local deadline=$((SECONDS + 30))
  # It says nothing when it listens.
  until rdma resource show cm_id | grep -q "state LISTEN .*src-addr $1"; do
    (( SECONDS < deadline )) || { echo "rping does not listen"; rdma resource show cm_id; exit 1; }
    sleep 0.05
  done
}
ping() {  # server's address, own address
  local code=0 said
  said=$(timeout "$patience" stdbuf -oL rping -c -a "$1" -I "$2" -C "$rounds" -v) || code=$?
  echo "$said"
  expect_ended "$code"
  (( $(grep -c "^ping data: rdma-ping-" <<<"$said") == rounds )) || { echo "not all $rounds pings came back"; exit 1; }
}
await_server() {
  local code=0
  wait "$1" || code=$?
  expect_ended "$code"
}
sent() { echo "$(</sys/class/net/v0/statistics/tx_packets)"; }
expect_sent_since() {  # packets sent before
  local sent=$(($(sent) - $1))
  echo "guest $TOKAMAK_LAB_RANK sent $sent packets over $TOKAMAK_LAB_KIND"
  (( sent >= 2 * rounds )) || { echo "the devices did not use the wire"; exit 1; }
}
await_active() {
  local deadline=$((SECONDS + 30))
  until grep -q ACTIVE "/sys/class/infiniband/$TOKAMAK_LAB_DEVICE/ports/1/state"; do
    (( SECONDS < deadline )) || { echo "$TOKAMAK_LAB_DEVICE does not come up again"; exit 1; }
    sleep 0.05
  done
}
ping_other_end() {
  local before
  before=$(sent)
  serve "$TOKAMAK_LAB_PEERS"
  ping "$TOKAMAK_LAB_PEERS" "$TOKAMAK_LAB_ADDRESS"
  await_server $!
  expect_sent_since "$before"
}

if (( TOKAMAK_LAB_HOSTS == 1 )); then
  ping_other_end
  if [[ "$TOKAMAK_LAB_KIND" == siw ]]; then
    ip link set v0 down
    ip link set v0 up
    await_active
    ping_other_end
  fi
else
  before=$(sent)
  # One after the other: rping serves one client.
  for (( guest = 1; guest < TOKAMAK_LAB_HOSTS; guest++ )); do
    if (( TOKAMAK_LAB_RANK == 0 )); then serve "$TOKAMAK_LAB_ADDRESS"; fi
    lab-barrier
    if (( TOKAMAK_LAB_RANK == 0 )); then await_server $!; fi
    if (( TOKAMAK_LAB_RANK == guest )); then ping 10.0.0.1 "$TOKAMAK_LAB_ADDRESS"; fi
  done
  expect_sent_since "$before"
fi
