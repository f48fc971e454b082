/* What tokamak.h promises, tried from C on a real daemon: c_interface SOCKET. Says what is wrong
 * and ends with 1; otherwise how many promises held. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tokamak/tokamak.h"

static int failures = 0;
static int checks = 0;

#define EXPECT(condition)                                                            \
  do {                                                                               \
    ++checks;                                                                        \
    if (!(condition)) {                                                              \
      ++failures;                                                                    \
      fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", __FILE__, __LINE__, #condition, tokamak_error()); \
    }                                                                                \
  } while (0)

static const int64_t soon = 30 * TOKAMAK_SECOND;

static void errors_have_names(void) {
  EXPECT(strcmp(tokamak_code_name(TOKAMAK_OK), "OK") == 0);
  EXPECT(strcmp(tokamak_code_name(TOKAMAK_NOT_FOUND), "NOT_FOUND") == 0);
  EXPECT(strcmp(tokamak_code_name((tokamak_code)99), "UNKNOWN") == 0);
  EXPECT(strncmp(tokamak_version(), "0.", 2) == 0);
}

static void ids_go_to_text_and_back(void) {
  const tokamak_id id = tokamak_id_of_name("an object");
  const tokamak_id other = tokamak_id_of_name("another object");
  EXPECT(memcmp(&id, &other, sizeof(id)) != 0);
  char hex[2 * TOKAMAK_ID_SIZE + 1];
  tokamak_id back;
  EXPECT(tokamak_id_to_hex(&id, hex) == TOKAMAK_OK && strlen(hex) == 40);
  EXPECT(tokamak_id_of_hex(hex, &back) == TOKAMAK_OK && memcmp(&id, &back, sizeof(id)) == 0);
  EXPECT(tokamak_id_of_hex("12", &back) == TOKAMAK_INVALID_ARGUMENT);
}

static void null_is_refused(tokamak_client* client) {
  const tokamak_id id = tokamak_id_of_name("x");
  tokamak_buffer* buffer = NULL;
  EXPECT(tokamak_connect(NULL, NULL, &client) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_put(NULL, &id, "x", 1, NULL, 0, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_put(client, NULL, "x", 1, NULL, 0, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_put(client, &id, NULL, 1, NULL, 0, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_get(client, &id, 0, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_get(NULL, &id, 0, &buffer) == TOKAMAK_INVALID_ARGUMENT && buffer == NULL);
  EXPECT(tokamak_seal(NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(strlen(tokamak_error()) > 0);
  EXPECT(tokamak_abort(NULL) == TOKAMAK_OK);
  tokamak_buffer_release(NULL);
  tokamak_disconnect(NULL);
  tokamak_unsubscribe(NULL);
  tokamak_names_free(NULL);
  tokamak_nodes_free(NULL);
  EXPECT(tokamak_get_cluster(client, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_cluster_located(NULL) == 0 && tokamak_cluster_count(NULL) == 0 && tokamak_cluster_at(NULL, 0) == NULL);
  tokamak_cluster_free(NULL);
  EXPECT(tokamak_buffer_data(NULL) == NULL && tokamak_buffer_size(NULL) == 0);
  tokamak_put_options options = {0, 0, 0, NULL};
  EXPECT(tokamak_put(client, &id, "x", 1, NULL, 0, &options) == TOKAMAK_INVALID_ARGUMENT);
}

static void nobody_listens(void) {
  tokamak_client* client = NULL;
  EXPECT(tokamak_connect("/nonexistent/tokd.sock", NULL, &client) == TOKAMAK_UNAVAILABLE && client == NULL);
  EXPECT(strstr(tokamak_error(), "/nonexistent/tokd.sock") != NULL);
}

static void what_was_put_is_read_in_place(tokamak_client* client) {
  const tokamak_id id = tokamak_id_of_name("put");
  tokamak_buffer* buffer = NULL;
  tokamak_put_options confirmed = {sizeof(confirmed), soon, 1, NULL};
  EXPECT(tokamak_put(client, &id, "data", 4, "about", 5, &confirmed) == TOKAMAK_OK);
  EXPECT(tokamak_put(client, &id, "data", 4, NULL, 0, &confirmed) == TOKAMAK_ALREADY_EXISTS);
  EXPECT(tokamak_get(client, &id, soon, &buffer) == TOKAMAK_OK);
  EXPECT(tokamak_buffer_size(buffer) == 4 && memcmp(tokamak_buffer_data(buffer), "data", 4) == 0);
  EXPECT(tokamak_buffer_metadata_size(buffer) == 5 && memcmp(tokamak_buffer_metadata(buffer), "about", 5) == 0);

  tokamak_object_info info;
  int here = 0;
  tokamak_names* holders = NULL;
  EXPECT(tokamak_stat(client, &id, &info, &here, &holders) == TOKAMAK_OK);
  EXPECT(here == 1 && info.state == TOKAMAK_STATE_SEALED && info.origin == TOKAMAK_ORIGIN_CREATED_HERE);
  EXPECT(info.data_size == 4 && info.metadata_size == 5 && info.pins == 1);
  EXPECT(tokamak_names_count(holders) == 1);
  EXPECT(strcmp(tokamak_names_at(holders, 0), tokamak_node(client)) == 0 && tokamak_names_at(holders, 1) == NULL);
  tokamak_names_free(holders);

  uint64_t hash = 0;
  EXPECT(tokamak_hash(client, &id, &hash) == TOKAMAK_OK && hash != 0);

  /* Deleted, it stays readable for who holds it, and for nobody else. */
  EXPECT(tokamak_delete(client, &id) == TOKAMAK_OK);
  EXPECT(memcmp(tokamak_buffer_data(buffer), "data", 4) == 0);
  EXPECT(tokamak_contains(client, &id, &here) == TOKAMAK_OK && here == 0);
  /* In its first seconds a directory cannot know that nobody holds it. */
  const tokamak_code again = tokamak_delete(client, &id);
  EXPECT(again == TOKAMAK_NOT_FOUND || again == TOKAMAK_UNAVAILABLE);
  tokamak_buffer_release(buffer);
}

static void names_are_kept_and_listed(tokamak_client* client) {
  const tokamak_id id = tokamak_id_of_name("weights/7"), unnamed = tokamak_id_of_name("unnamed");
  tokamak_put_options named = {sizeof(named), soon, 0, "weights/7"};
  tokamak_subscription* subscription = NULL;
  EXPECT(tokamak_subscribe(client, &subscription) == TOKAMAK_OK);
  EXPECT(tokamak_put(client, &unnamed, "1", 1, NULL, 0, &named) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(strstr(tokamak_error(), "weights/7") != NULL);
  EXPECT(tokamak_put(client, &id, "1", 1, NULL, 0, &named) == TOKAMAK_OK);
  EXPECT(tokamak_put(client, &unnamed, "1", 1, NULL, 0, NULL) == TOKAMAK_OK);

  tokamak_object_info infos[2];
  tokamak_names* names = NULL;
  size_t count = 0;
  EXPECT(tokamak_list_named(client, NULL, infos, 2, &count, &names) == TOKAMAK_OK);
  EXPECT(count == 2 && tokamak_names_count(names) == 2);
  for (size_t i = 0; i < count; ++i) {
    const int is_named = memcmp(&infos[i].id, &id, sizeof(id)) == 0;
    EXPECT(strcmp(tokamak_names_at(names, i), is_named ? "weights/7" : "") == 0);
  }
  tokamak_names_free(names);
  EXPECT(tokamak_get_name(client, &id, &names) == TOKAMAK_OK);
  EXPECT(tokamak_names_count(names) == 1 && strcmp(tokamak_names_at(names, 0), "weights/7") == 0);
  tokamak_names_free(names);
  EXPECT(tokamak_list_named(client, NULL, infos, 2, &count, NULL) == TOKAMAK_INVALID_ARGUMENT);

  tokamak_event event;
  EXPECT(tokamak_next_events(subscription, soon, &event, 1, &count, NULL) == TOKAMAK_OK && count == 1);
  EXPECT(strcmp(tokamak_event_name(subscription, 0), "weights/7") == 0);
  EXPECT(tokamak_event_name(subscription, 1) == NULL && tokamak_event_name(NULL, 0) == NULL);
  tokamak_unsubscribe(subscription);
  EXPECT(tokamak_delete(client, &id) == TOKAMAK_OK && tokamak_delete(client, &unnamed) == TOKAMAK_OK);
}

static void an_object_is_filled_in_place(tokamak_client* client) {
  const tokamak_id id = tokamak_id_of_name("created"), aborted = tokamak_id_of_name("aborted");
  const size_t size = 1000000;
  tokamak_writer* writer = NULL;
  int here = 1;
  EXPECT(tokamak_create(client, &id, size, "m", 1, NULL, &writer) == TOKAMAK_OK);
  EXPECT(tokamak_writer_size(writer) == size && tokamak_writer_metadata_size(writer) == 1);
  EXPECT((uintptr_t)tokamak_writer_data(writer) % 64 == 0);
  memset(tokamak_writer_data(writer), 7, size);
  EXPECT(*(char*)tokamak_writer_metadata(writer) == 'm');
  EXPECT(tokamak_contains(client, &id, &here) == TOKAMAK_OK && here == 0);
  EXPECT(tokamak_seal(writer) == TOKAMAK_OK);
  EXPECT(tokamak_contains(client, &id, &here) == TOKAMAK_OK && here == 1);

  tokamak_buffer* buffer = NULL;
  EXPECT(tokamak_get(client, &id, 0, &buffer) == TOKAMAK_OK);
  EXPECT(tokamak_buffer_size(buffer) == size && ((const char*)tokamak_buffer_data(buffer))[size - 1] == 7);
  tokamak_buffer_release(buffer);

  EXPECT(tokamak_create(client, &aborted, 10, NULL, 0, NULL, &writer) == TOKAMAK_OK);
  EXPECT(tokamak_abort(writer) == TOKAMAK_OK);
  EXPECT(tokamak_get(client, &aborted, 0, &buffer) == TOKAMAK_NOT_FOUND);
  EXPECT(tokamak_create(client, &id, 10, NULL, 0, NULL, &writer) == TOKAMAK_ALREADY_EXISTS);
  EXPECT(tokamak_create(client, &aborted, UINT64_MAX, NULL, 0, NULL, &writer) == TOKAMAK_RESOURCE_EXHAUSTED);
  EXPECT(tokamak_delete(client, &id) == TOKAMAK_OK);
}

static void many_are_got_at_once(tokamak_client* client) {
  const tokamak_id ids[3] = {tokamak_id_of_name("1"), tokamak_id_of_name("missing"), tokamak_id_of_name("3")};
  tokamak_buffer* buffers[3];
  tokamak_code codes[3];
  uint8_t ready[3] = {9, 9, 9};
  EXPECT(tokamak_put(client, &ids[0], "1", 1, NULL, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_put(client, &ids[2], NULL, 0, NULL, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_get_many(client, ids, 3, 20 * TOKAMAK_MILLISECOND, buffers, codes) == codes[1]);
  EXPECT(codes[0] == TOKAMAK_OK && codes[1] == TOKAMAK_NOT_FOUND && codes[2] == TOKAMAK_OK);
  EXPECT(buffers[0] != NULL && buffers[1] == NULL && buffers[2] != NULL);
  EXPECT(tokamak_buffer_size(buffers[2]) == 0);
  tokamak_buffer_release(buffers[0]);
  tokamak_buffer_release(buffers[2]);

  EXPECT(tokamak_wait(client, ids, 3, 2, soon, TOKAMAK_SCOPE_ANYWHERE, ready) == TOKAMAK_OK);
  EXPECT(ready[0] == 1 && ready[1] == 0 && ready[2] == 1);
  EXPECT(tokamak_wait(client, ids, 3, 3, 0, TOKAMAK_SCOPE_LOCAL, ready) == TOKAMAK_OK && ready[1] == 0);
  EXPECT(tokamak_wait(client, ids, TOKAMAK_MAX_WAITED + 1, 1, 0, TOKAMAK_SCOPE_LOCAL, ready) ==
         TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_wait(client, ids, 3, 3, 0, (tokamak_scope)7, ready) == TOKAMAK_INVALID_ARGUMENT);

  /* Listed one by one. */
  tokamak_object_info info;
  tokamak_id after;
  size_t count = 0, total = 0;
  const tokamak_id* start = NULL;
  while (tokamak_list(client, start, &info, 1, &count) == TOKAMAK_OK && count == 1) {
    ++total;
    after = info.id;
    start = &after;
  }
  EXPECT(count == 0 && total == 2);
  EXPECT(tokamak_delete(client, &ids[0]) == TOKAMAK_OK && tokamak_delete(client, &ids[2]) == TOKAMAK_OK);
}

static void the_cluster_is_known(tokamak_client* client) {
  tokamak_nodes* nodes = NULL;
  EXPECT(tokamak_get_nodes(client, &nodes) == TOKAMAK_OK && tokamak_nodes_count(nodes) == 1);
  EXPECT(tokamak_nodes_at(nodes, 0)->is_this == 1 && tokamak_nodes_at(nodes, 1) == NULL);
  EXPECT(strcmp(tokamak_nodes_at(nodes, 0)->name, tokamak_node(client)) == 0);
  EXPECT(tokamak_nodes_at(nodes, 0)->capacity == tokamak_capacity(client) && tokamak_capacity(client) > 0);
  tokamak_nodes_free(nodes);
  EXPECT(tokamak_status(client) == TOKAMAK_OK);
}

static void the_cluster_is_seen(const char* socket) {
  tokamak_client* client = NULL;
  tokamak_cluster* cluster = NULL;
  EXPECT(tokamak_connect(socket, NULL, &client) == TOKAMAK_OK && tokamak_get_cluster(client, &cluster) == TOKAMAK_OK);
  const uint64_t capacity = tokamak_capacity(client);
  tokamak_disconnect(client); /* the view outlives it */
  EXPECT(tokamak_cluster_located(cluster) == 1 && tokamak_cluster_count(cluster) == 1);
  EXPECT(tokamak_cluster_at(cluster, 1) == NULL);
  const tokamak_viewed_node* const node = tokamak_cluster_at(cluster, 0);
  EXPECT(node->info.is_this == 1 && node->info.capacity == capacity);
  EXPECT(node->state == TOKAMAK_NODE_ALIVE && node->unheard_microseconds == 0);
  uint64_t told = 0;
  for (size_t i = 0; i < node->numbers_count; ++i) {
    if (strcmp(node->numbers[i].name, "store_capacity_bytes") == 0) told = node->numbers[i].value;
  }
  EXPECT(told == capacity);
  tokamak_cluster_free(cluster);
}

static void events_are_told(tokamak_client* client) {
  const tokamak_id id = tokamak_id_of_name("event");
  tokamak_subscription* subscription = NULL;
  tokamak_event event;
  size_t count = 0;
  uint64_t dropped = 9;
  EXPECT(tokamak_subscribe(client, &subscription) == TOKAMAK_OK);
  EXPECT(tokamak_subscription_descriptor(subscription) >= 0 && tokamak_subscription_descriptor(NULL) == -1);
  EXPECT(tokamak_next_events(subscription, 0, &event, 1, &count, &dropped) == TOKAMAK_DEADLINE_EXCEEDED);
  EXPECT(tokamak_put(client, &id, "x", 1, NULL, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_delete(client, &id) == TOKAMAK_OK);
  EXPECT(tokamak_next_events(subscription, soon, &event, 1, &count, &dropped) == TOKAMAK_OK);
  EXPECT(count == 1 && dropped == 0 && event.kind == TOKAMAK_EVENT_SEALED && event.data_size == 1);
  EXPECT(memcmp(&event.id, &id, sizeof(id)) == 0);
  EXPECT(tokamak_next_events(subscription, soon, &event, 1, &count, NULL) == TOKAMAK_OK);
  EXPECT(event.kind == TOKAMAK_EVENT_DELETED);
  tokamak_unsubscribe(subscription);
}

static void gets_are_under_way_at_once(tokamak_client* client) {
  const tokamak_id here = tokamak_id_of_name("here"), later = tokamak_id_of_name("later"), never = tokamak_id_of_name("never");
  tokamak_gets* gets = NULL;
  tokamak_answer answer;
  uint64_t numbers[3];
  int descriptor = -1;
  EXPECT(tokamak_put(client, &here, "1", 1, NULL, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_gets_make(client, &gets) == TOKAMAK_OK && tokamak_gets_pending(gets) == 0);
  EXPECT(tokamak_gets_next(gets, soon, NULL, &answer) == TOKAMAK_FAILED_PRECONDITION);
  EXPECT(tokamak_gets_descriptor(gets, &descriptor) == TOKAMAK_OK && descriptor >= 0);
  EXPECT(tokamak_gets_begin(gets, &later, soon, &numbers[0]) == TOKAMAK_OK);
  EXPECT(tokamak_gets_begin(gets, &here, soon, &numbers[1]) == TOKAMAK_OK);
  EXPECT(tokamak_gets_begin(gets, &never, soon, &numbers[2]) == TOKAMAK_OK && tokamak_gets_pending(gets) == 3);
  EXPECT(tokamak_gets_send(gets) == TOKAMAK_OK);
  EXPECT(tokamak_gets_next(gets, soon, NULL, &answer) == TOKAMAK_OK && answer.number == numbers[1]);
  EXPECT(answer.code == TOKAMAK_OK && memcmp(&answer.id, &here, sizeof(here)) == 0);
  EXPECT(tokamak_buffer_size(answer.buffer) == 1);
  tokamak_buffer_release(answer.buffer);
  EXPECT(tokamak_gets_next(gets, 0, NULL, &answer) == TOKAMAK_DEADLINE_EXCEEDED);

  tokamak_interrupt* interrupt = NULL;
  EXPECT(tokamak_interrupt_make(&interrupt) == TOKAMAK_OK && tokamak_interrupt_fired(interrupt) == 0);
  tokamak_interrupt_fire(interrupt);
  EXPECT(tokamak_interrupt_fired(interrupt) == 1);
  EXPECT(tokamak_gets_next(gets, soon, interrupt, &answer) == TOKAMAK_CANCELLED);
  tokamak_interrupt_reset(interrupt);
  tokamak_gets_cancel(gets, numbers[2]);
  EXPECT(tokamak_put(client, &later, "22", 2, NULL, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_gets_next(gets, soon, interrupt, &answer) == TOKAMAK_OK && answer.number == numbers[0]);
  EXPECT(tokamak_buffer_size(answer.buffer) == 2 && tokamak_gets_pending(gets) == 0);
  tokamak_buffer_release(answer.buffer);
  tokamak_interrupt_free(interrupt);

  EXPECT(tokamak_gets_begin(gets, &never, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_gets_next(gets, soon, NULL, &answer) == TOKAMAK_OK && answer.buffer == NULL);
  EXPECT(answer.code == TOKAMAK_NOT_FOUND && strlen(tokamak_error()) > 0);
  EXPECT(tokamak_gets_begin(gets, &never, soon, NULL) == TOKAMAK_OK);
  tokamak_gets_free(gets);
  tokamak_gets_free(NULL);
  tokamak_interrupt_free(NULL);
  EXPECT(tokamak_gets_begin(NULL, &never, 0, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_delete(client, &here) == TOKAMAK_OK && tokamak_delete(client, &later) == TOKAMAK_OK);
}

static void objects_are_brought_and_pinned(tokamak_client* client) {
  const tokamak_id ids[2] = {tokamak_id_of_name("pinned"), tokamak_id_of_name("missing")};
  tokamak_code codes[2];
  EXPECT(tokamak_put(client, &ids[0], "1", 1, NULL, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_prefetch(client, ids, 2, 20 * TOKAMAK_MILLISECOND, codes) == TOKAMAK_NOT_FOUND);
  EXPECT(codes[0] == TOKAMAK_OK && codes[1] == TOKAMAK_NOT_FOUND);
  EXPECT(tokamak_pin(client, ids, 1, soon, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_unpin(client, &ids[0]) == TOKAMAK_OK && tokamak_unpin(client, &ids[1]) == TOKAMAK_NOT_FOUND);
  EXPECT(tokamak_push(client, ids, 1, "nobody", soon, codes) == TOKAMAK_NOT_FOUND && codes[0] == TOKAMAK_NOT_FOUND);
  EXPECT(tokamak_push(client, ids, 1, tokamak_node(client), soon, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_push(client, ids, 1, NULL, soon, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_pin(client, NULL, 1, soon, NULL) == TOKAMAK_INVALID_ARGUMENT);
  EXPECT(tokamak_delete(client, &ids[0]) == TOKAMAK_OK);
}

static void a_reader_cannot_create(const char* socket) {
  const tokamak_id id = tokamak_id_of_name("read only");
  tokamak_client_options options = {sizeof(options), soon, 1, "c_interface", 0};
  tokamak_client* reader = NULL;
  tokamak_writer* writer = NULL;
  EXPECT(tokamak_connect(socket, &options, &reader) == TOKAMAK_OK);
  EXPECT(tokamak_create(reader, &id, 100000, NULL, 0, NULL, &writer) == TOKAMAK_FAILED_PRECONDITION);
  tokamak_disconnect(reader);
}

/* A child may read and drop what it has from its parent, and the parent keeps all of it. */
static void a_child_drops_nothing_of_its_parents(tokamak_client* client) {
  const tokamak_id id = tokamak_id_of_name("parent's"), begun = tokamak_id_of_name("begun");
  tokamak_buffer* buffer = NULL;
  tokamak_writer* writer = NULL;
  tokamak_subscription* subscription = NULL;
  EXPECT(tokamak_put(client, &id, "kept", 4, NULL, 0, NULL) == TOKAMAK_OK);
  EXPECT(tokamak_get(client, &id, soon, &buffer) == TOKAMAK_OK);
  EXPECT(tokamak_create(client, &begun, 100000, NULL, 0, NULL, &writer) == TOKAMAK_OK);
  EXPECT(tokamak_subscribe(client, &subscription) == TOKAMAK_OK);
  fflush(stderr);
  const pid_t child = fork();
  if (child == 0) {
    int here = 0;
    failures = 0;
    EXPECT(memcmp(tokamak_buffer_data(buffer), "kept", 4) == 0);
    EXPECT(tokamak_contains(client, &id, &here) == TOKAMAK_FAILED_PRECONDITION);
    EXPECT(strstr(tokamak_error(), "fork") != NULL);
    EXPECT(tokamak_status(client) == TOKAMAK_FAILED_PRECONDITION);
    EXPECT(tokamak_seal(writer) == TOKAMAK_FAILED_PRECONDITION);
    tokamak_buffer_release(buffer);
    tokamak_unsubscribe(subscription);
    tokamak_disconnect(client);
    /* Not exit: what a child leaves of its parent's connection is no leak. */
    _exit(failures == 0 ? 0 : 1);
  }
  int ended = 1;
  EXPECT(child > 0 && waitpid(child, &ended, 0) == child && ended == 0);

  tokamak_object_info info;
  EXPECT(tokamak_stat(client, &id, &info, NULL, NULL) == TOKAMAK_OK && info.pins == 1);
  EXPECT(tokamak_seal(writer) == TOKAMAK_OK);
  tokamak_event event;
  size_t count = 0;
  EXPECT(tokamak_next_events(subscription, soon, &event, 1, &count, NULL) == TOKAMAK_OK && count == 1);
  EXPECT(memcmp(tokamak_buffer_data(buffer), "kept", 4) == 0);
  tokamak_unsubscribe(subscription);
  tokamak_buffer_release(buffer);
  EXPECT(tokamak_delete(client, &id) == TOKAMAK_OK && tokamak_delete(client, &begun) == TOKAMAK_OK);
}

static void* looks(void* client) {
  const tokamak_id id = tokamak_id_of_name("that nobody puts");
  int here = 1;
  return tokamak_contains(client, &id, &here) == TOKAMAK_OK && here == 0 ? client : NULL;
}

/* Its threads call at once, and the parent's connection stays the parent's. A program that was made
 * before there was `reconnect` says so by the size of its options. */
static void a_child_of_a_client_that_reconnects_goes_on(const char* socket) {
  tokamak_client_options options = {sizeof(options), soon, 0, "c_interface", 1};
  tokamak_client *client = NULL, *of_an_earlier_program = NULL;
  EXPECT(tokamak_connect(socket, &options, &client) == TOKAMAK_OK);
  options.size = offsetof(tokamak_client_options, reconnect);
  EXPECT(tokamak_connect(socket, &options, &of_an_earlier_program) == TOKAMAK_OK);
  fflush(stderr);
  const pid_t child = fork();
  if (child == 0) {
    failures = 0;
    EXPECT(tokamak_status(client) == TOKAMAK_FAILED_PRECONDITION);
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) EXPECT(pthread_create(&threads[i], NULL, looks, client) == 0);
    for (int i = 0; i < 4; ++i) {
      void* result = NULL;
      EXPECT(pthread_join(threads[i], &result) == 0 && result == client);
    }
    EXPECT(tokamak_status(client) == TOKAMAK_OK);
    EXPECT(looks(of_an_earlier_program) == NULL && strstr(tokamak_error(), "connect again after fork") != NULL);
    tokamak_disconnect(client);
    tokamak_disconnect(of_an_earlier_program);
    _exit(failures == 0 ? 0 : 1);
  }
  int ended = 1;
  EXPECT(child > 0 && waitpid(child, &ended, 0) == child && ended == 0);
  EXPECT(looks(client) == client && looks(of_an_earlier_program) == of_an_earlier_program);
  tokamak_disconnect(client);
  tokamak_disconnect(of_an_earlier_program);
}

static void* waits_for_nothing(void* client) {
  const tokamak_id id = tokamak_id_of_name("that nobody puts");
  tokamak_buffer* buffer = NULL;
  tokamak_get(client, &id, soon, &buffer);
  return NULL;
}

static void* waits_for_events(void* subscription) {
  tokamak_event event;
  size_t count = 0;
  while (tokamak_next_events(subscription, soon, &event, 1, &count, NULL) == TOKAMAK_OK) {
  }
  return NULL;
}

/* Of two threads that wait one reads for both. */
static void a_cancelled_thread_leaves_nothing_behind(tokamak_client* client) {
  tokamak_subscription* subscription = NULL;
  EXPECT(tokamak_subscribe(client, &subscription) == TOKAMAK_OK);
  const tokamak_id id = tokamak_id_of_name("beside those that wait");
  for (int calls = 0; calls <= 100; calls += 100) {
    pthread_t waiting[3];
    EXPECT(pthread_create(&waiting[0], NULL, waits_for_nothing, client) == 0);
    EXPECT(pthread_create(&waiting[1], NULL, waits_for_nothing, client) == 0);
    EXPECT(pthread_create(&waiting[2], NULL, waits_for_events, subscription) == 0);
    int here = 1;
    for (int i = 0; i < calls; ++i) EXPECT(tokamak_contains(client, &id, &here) == TOKAMAK_OK && here == 0);
    for (int i = 0; i < 3; ++i) EXPECT(pthread_cancel(waiting[i]) == 0);
    for (int i = 0; i < 3; ++i) {
      void* result = NULL;
      EXPECT(pthread_join(waiting[i], &result) == 0 && result == PTHREAD_CANCELED);
    }
    EXPECT(tokamak_put(client, &id, "x", 1, NULL, 0, NULL) == TOKAMAK_OK);
    tokamak_buffer* buffer = NULL;
    EXPECT(tokamak_get(client, &id, soon, &buffer) == TOKAMAK_OK);
    tokamak_buffer_release(buffer);
    EXPECT(tokamak_delete(client, &id) == TOKAMAK_OK);
  }
  tokamak_unsubscribe(subscription);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: c_interface SOCKET | --version\n");
    return 2;
  }
  if (strcmp(argv[1], "--version") == 0) return puts(tokamak_version()) < 0 ? 1 : 0;
  tokamak_client* client = NULL;
  if (tokamak_connect(argv[1], NULL, &client) != TOKAMAK_OK) {
    fprintf(stderr, "%s\n", tokamak_error());
    return 1;
  }
  errors_have_names();
  ids_go_to_text_and_back();
  null_is_refused(client);
  nobody_listens();
  what_was_put_is_read_in_place(client);
  names_are_kept_and_listed(client);
  an_object_is_filled_in_place(client);
  many_are_got_at_once(client);
  the_cluster_is_known(client);
  the_cluster_is_seen(argv[1]);
  events_are_told(client);
  gets_are_under_way_at_once(client);
  objects_are_brought_and_pinned(client);
  a_reader_cannot_create(argv[1]);
  a_cancelled_thread_leaves_nothing_behind(client);
  a_child_drops_nothing_of_its_parents(client);
  a_child_of_a_client_that_reconnects_goes_on(argv[1]);
  tokamak_disconnect(client);
  if (failures == 0) printf("%d promises of tokamak.h hold\n", checks);
  return failures == 0 ? 0 : 1;
}
