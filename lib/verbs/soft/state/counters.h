// Counts of a software NIC since it was opened.
//
// Law: each packet that arrives is counted once: as DeviceCounters::dropped_* or datagrams_received
// if no queue pair saw it, otherwise as packets_received and in exactly one of the lines marked
// (*). One to a multicast group is counted once for each member.
#pragma once

#include <cstdint>

namespace tokamak::verbs::soft {

// Counts of one queue pair, or the sum over all that a device has and had.
struct QueuePairCounters {
  uint64_t packets_sent = 0;
  uint64_t bytes_sent = 0;  // payload
  uint64_t packets_received = 0;
  uint64_t bytes_received = 0;

  // As requester.
  uint64_t packets_retransmitted = 0;
  uint64_t timeouts = 0;
  uint64_t answers_overdue = 0;         // no answer for some round trips, so the oldest was sent again
  uint64_t answers_taken = 0;           // (*) acknowledgements, READ data, results of atomics
  uint64_t responses_lost = 0;          // (*) as a later answer shows: READ data or an atomic's result to ask for again
  uint64_t naks_received_sequence = 0;  // (*)
  uint64_t naks_received_not_ready = 0;  // (*)
  uint64_t naks_received_fatal = 0;      // (*) invalid request, remote access or operation
  uint64_t answers_stale = 0;            // (*) acknowledged already: late or repeated
  uint64_t answers_bad = 0;              // (*) to a request never made, or malformed

  // Datagrams.
  uint64_t datagrams_not_sent = 0;    // longer than the path MTU
  uint64_t datagrams_unreceived = 0;  // (*) no receive was posted
  uint64_t datagrams_too_long = 0;    // (*) longer than its receive

  // Congestion.
  uint64_t notifications_received = 0;  // (*)
  uint64_t notifications_sent = 0;
  uint64_t marks_received = 0;  // packets marked (ECN)
  uint64_t rate = 0;            // bits per second that congestion control allows; 0: no bound. Not summed

  // As responder.
  uint64_t acks_sent = 0;
  uint64_t naks_sent_sequence = 0;
  uint64_t naks_sent_not_ready = 0;
  uint64_t naks_sent_invalid_request = 0;
  uint64_t naks_sent_remote_access = 0;
  uint64_t naks_sent_remote_operation = 0;
  uint64_t requests_executed = 0;      // (*)
  uint64_t requests_duplicate = 0;     // (*)
  uint64_t requests_out_of_order = 0;  // (*) dropped: after a gap, or while the peer waits for a receive
  uint64_t requests_held = 0;          // (*) held now, behind a gap
  uint64_t requests_refused = 0;       // (*) dropped: not in a state to receive
  uint64_t requests_rejected = 0;      // (*) dropped: not allowed (NAK), no receive, or no room to answer

  void Add(const QueuePairCounters& other);
};

struct DeviceCounters {
  QueuePairCounters queue_pairs;
  uint64_t batches_received = 0;
  uint64_t batches_sent = 0;
  uint64_t port_busy = 0;            // times that the port took fewer packets than offered
  uint64_t datagrams_sent = 0;       // the connection manager's
  uint64_t datagrams_received = 0;   // the connection manager's
  uint64_t connections_refused = 0;  // of these, requests beyond its bounds

  // Dropped before any queue pair saw them.
  uint64_t dropped_corrupt = 0;  // ICRC
  uint64_t dropped_unknown_opcode = 0;
  uint64_t dropped_unknown_queue_pair = 0;
  uint64_t dropped_wrong_peer = 0;
  uint64_t dropped_wrong_pkey = 0;
  uint64_t dropped_wrong_qkey = 0;
  uint64_t dropped_unknown_group = 0;  // to a multicast group without members here
  uint64_t dropped_bad_datagram = 0;   // not a CM MAD

  uint64_t dropped_datagrams = 0;    // not sent: too many were waiting
  uint64_t dropped_before_send = 0;  // not sent: their queue pair or memory went away
  uint64_t completion_queue_overruns = 0;
};

inline void QueuePairCounters::Add(const QueuePairCounters& other) {
  packets_sent += other.packets_sent;
  bytes_sent += other.bytes_sent;
  packets_received += other.packets_received;
  bytes_received += other.bytes_received;
  packets_retransmitted += other.packets_retransmitted;
  timeouts += other.timeouts;
  answers_overdue += other.answers_overdue;
  answers_taken += other.answers_taken;
  responses_lost += other.responses_lost;
  naks_received_sequence += other.naks_received_sequence;
  naks_received_not_ready += other.naks_received_not_ready;
  naks_received_fatal += other.naks_received_fatal;
  answers_stale += other.answers_stale;
  answers_bad += other.answers_bad;
  datagrams_not_sent += other.datagrams_not_sent;
  datagrams_unreceived += other.datagrams_unreceived;
  datagrams_too_long += other.datagrams_too_long;
  notifications_received += other.notifications_received;
  notifications_sent += other.notifications_sent;
  marks_received += other.marks_received;
  acks_sent += other.acks_sent;
  naks_sent_sequence += other.naks_sent_sequence;
  naks_sent_not_ready += other.naks_sent_not_ready;
  naks_sent_invalid_request += other.naks_sent_invalid_request;
  naks_sent_remote_access += other.naks_sent_remote_access;
  naks_sent_remote_operation += other.naks_sent_remote_operation;
  requests_executed += other.requests_executed;
  requests_duplicate += other.requests_duplicate;
  requests_out_of_order += other.requests_out_of_order;
  requests_held += other.requests_held;
  requests_refused += other.requests_refused;
  requests_rejected += other.requests_rejected;
}

}  // namespace tokamak::verbs::soft
