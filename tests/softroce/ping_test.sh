#!/bin/bash
# Packets of one device reach the other over the wire: rping within a guest, or from every other guest to the first.
#
# Runs in a guest of ci/softroce only.
set -euo pipefail
rounds=20
serve() {  # own address
  rping -s -a "$1" -C "$rounds" &
  local deadline=$((SECONDS + 30))
  # It says nothing when it listens.
  until rdma resource show cm_id | grep -q "state LISTEN .*src-addr $1"; do
    (( SECONDS < deadline )) || { echo "rping does not listen"; rdma resource show cm_id; exit 1; }
    sleep 0.05
  done
}
ping() { rping -c -a "$1" -I "$2" -C "$rounds" -v; }  # server's address, own address
sent() { echo "$(</sys/class/net/v0/statistics/tx_packets)"; }

before=$(sent)
if (( TOKAMAK_LAB_HOSTS == 1 )); then
  serve "$TOKAMAK_LAB_PEERS"
  ping "$TOKAMAK_LAB_PEERS" "$TOKAMAK_LAB_ADDRESS"
  wait $!
else
  # One after the other: rping serves one client.
  for (( guest = 1; guest < TOKAMAK_LAB_HOSTS; guest++ )); do
    if (( TOKAMAK_LAB_RANK == 0 )); then serve "$TOKAMAK_LAB_ADDRESS"; fi
    lab-barrier
    if (( TOKAMAK_LAB_RANK == 0 )); then wait $!; fi
    if (( TOKAMAK_LAB_RANK == guest )); then ping 10.0.0.1 "$TOKAMAK_LAB_ADDRESS"; fi
  done
fi
after=$(sent)
echo "guest $TOKAMAK_LAB_RANK sent $((after - before)) packets over $TOKAMAK_LAB_KIND"
(( after - before >= 2 * rounds )) || { echo "the devices did not use the wire"; exit 1; }
