/* The C interface of Tokamak, which other languages bind to. It says what tokamak/client.h says in
 * C++; where a word is not explained here, it is there.
 *
 *   tokamak_client* client;
 *   tokamak_buffer* buffer;
 *   const tokamak_id id = tokamak_id_of_name("greeting");
 *   if (tokamak_connect("/run/tokamak/tokd.sock", NULL, &client) != TOKAMAK_OK ||
 *       tokamak_put(client, &id, "hello", 5, NULL, 0, NULL) != TOKAMAK_OK ||
 *       tokamak_get(client, &id, 5 * TOKAMAK_SECOND, &buffer) != TOKAMAK_OK) {
 *     fprintf(stderr, "%s\n", tokamak_error());
 *     return 1;
 *   }
 *   use(tokamak_buffer_data(buffer), tokamak_buffer_size(buffer));
 *   tokamak_buffer_release(buffer);
 *   tokamak_disconnect(client);
 *
 * Errors: what can fail returns a tokamak_code, and on anything but TOKAMAK_OK has written nothing
 * to its outputs unless it says so. tokamak_error() has the words. No C++ exception leaves a call;
 * where memory runs out it is TOKAMAK_RESOURCE_EXHAUSTED.
 * Arguments: a null pointer is TOKAMAK_INVALID_ARGUMENT wherever NULL is not said to be allowed.
 * Bytes, arrays and texts are only looked at during the call. Texts that come back are UTF-8 or
 * ASCII, end with a zero, and belong to the library.
 * Handles (pointers to structs that only the library knows) belong to the caller, who gives each
 * back by the function that its section names, once; all of these take NULL, and do nothing then.
 * Handles are independent: a buffer or subscription may outlive the client that it came from.
 * Waiting: time-outs are in nanoseconds. What is negative is zero, for looking without waiting, and
 * what is longer than a day is a day. Every call ends by its time-out or by that of the client.
 * Thread rule: a client may be used by any number of threads at once, and is given back when none
 * uses it. Of other handles, what takes a pointer to const is free to any thread, and the rest one
 * at a time.
 * Cancellation (pthread_cancel): a thread that waits in a call ends there, within two seconds, as if
 * the call had been interrupted; in all else it goes on to the end of the call.
 * Fork rule: a child of fork() may only give handles back, of which the daemon does not hear, and
 * read buffers for as long as the parent keeps them. Its other calls fail with
 * TOKAMAK_FAILED_PRECONDITION; it connects anew, or the first call of a client that reconnects
 * does.
 * ABI: within one 0.N of the version functions, numbers and layouts stay, and are only added to
 * (docs/library.md). Structs that come from the library have room left for that; those that go
 * to it begin with their size.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
/* C may pass any number as an enum; in C++ that is one of its values only where it has a type. */
#define TOKAMAK_ANY_INT : int
#else
#define TOKAMAK_ANY_INT
#endif

/* ---- Errors ---- */

/* The numbers are those of gRPC and of tokamak::StatusCode; a later library may return more. */
typedef enum tokamak_code TOKAMAK_ANY_INT {
  TOKAMAK_OK = 0,
  TOKAMAK_CANCELLED = 1,
  TOKAMAK_UNKNOWN = 2,
  TOKAMAK_INVALID_ARGUMENT = 3,
  TOKAMAK_DEADLINE_EXCEEDED = 4,
  TOKAMAK_NOT_FOUND = 5,
  TOKAMAK_ALREADY_EXISTS = 6,
  TOKAMAK_PERMISSION_DENIED = 7,
  TOKAMAK_RESOURCE_EXHAUSTED = 8,
  TOKAMAK_FAILED_PRECONDITION = 9,
  TOKAMAK_ABORTED = 10,
  TOKAMAK_OUT_OF_RANGE = 11,
  TOKAMAK_UNIMPLEMENTED = 12,
  TOKAMAK_INTERNAL = 13,
  TOKAMAK_UNAVAILABLE = 14, /* no daemon, or the connection is gone, for good unless the client reconnects */
  TOKAMAK_DATA_LOSS = 15,
  TOKAMAK_UNAUTHENTICATED = 16
} tokamak_code;

/* "NOT_FOUND"; of a number that is none of these, "UNKNOWN". The text lives for ever. */
const char* tokamak_code_name(tokamak_code code);

/* What the last call of this thread that failed had to say: one line that names the remedy. "" if
 * none failed. The text lives until the next call of this thread that fails. */
const char* tokamak_error(void);

/* "0.1.0", or "0.1.0 (126c5fe1f4d2)" where the build was told its commit. The text lives for
 * ever. */
const char* tokamak_version(void);

/* ---- Times ---- */

#define TOKAMAK_MILLISECOND INT64_C(1000000)
#define TOKAMAK_SECOND INT64_C(1000000000)

/* ---- Ids ---- */

#define TOKAMAK_ID_SIZE 20

/* Names an object: opaque bytes, chosen by the application. A plain value, to be copied and
 * compared. */
typedef struct tokamak_id {
  uint8_t bytes[TOKAMAK_ID_SIZE];
} tokamak_id;

/* The id that names `name`, so that programs can agree on names: tokamak::ObjectId::FromName. Of
 * NULL, that of "". */
tokamak_id tokamak_id_of_name(const char* name);

/* From 40 hexadecimal digits; anything else is TOKAMAK_INVALID_ARGUMENT. */
tokamak_code tokamak_id_of_hex(const char* hex, tokamak_id* id);

/* Writes 40 hexadecimal digits and a zero. */
tokamak_code tokamak_id_to_hex(const tokamak_id* id, char hex[2 * TOKAMAK_ID_SIZE + 1]);

/* ---- Clients: tokamak_connect ... tokamak_disconnect ---- */

typedef struct tokamak_client tokamak_client;

/* Begin with {sizeof(tokamak_client_options), ...}; what is zero otherwise is the default. */
typedef struct tokamak_client_options {
  size_t size;
  int64_t call_timeout; /* of calls that take none, and beyond their own of those that do; 10 s */
  int read_only;        /* not 0: this client creates nothing, and cannot write by mistake */
  const char* name;     /* for the daemon's log; "client" */
  int reconnect;        /* not 0: where the connection is lost, the next call connects anew */
} tokamak_client_options;

/* Connects to the daemon that listens at `socket_path`. `options` may be NULL.
 * With `reconnect` a client outlives its daemon: tokamak::ClientOptions says how. A call that was
 * under way when the daemon ended is TOKAMAK_UNAVAILABLE, and so are calls until there is a daemon
 * again. Buffers can be read on; a writer of before is TOKAMAK_UNAVAILABLE to seal; a subscription
 * ends; gets go on with the next tokamak_gets_begin. */
tokamak_code tokamak_connect(const char* socket_path, const tokamak_client_options* options, tokamak_client** client);

void tokamak_disconnect(tokamak_client* client);

/* TOKAMAK_OK while connected; afterwards why not. Lost once, a connection stays lost; the next call
 * of a client that reconnects makes another. Never waits. */
tokamak_code tokamak_status(const tokamak_client* client);

/* The node's name, which lives as long as the client; and what its objects may take together, in
 * bytes. Of NULL: "" and 0. */
const char* tokamak_node(const tokamak_client* client);
uint64_t tokamak_capacity(const tokamak_client* client);

/* ---- Putting ---- */

/* Begin with {sizeof(tokamak_put_options), ...}; tokamak::PutOptions explains them. */
typedef struct tokamak_put_options {
  size_t size;
  int64_t timeout;  /* to wait for room; 0 does not wait. Without options: 5 s */
  int confirmed;    /* not 0: TOKAMAK_OK means that the id was free in the whole cluster */
  const char* name; /* that the id was made of, to be kept with the object and listed; NULL: none */
} tokamak_put_options;

/* Creates, copies and seals. `data` and `metadata` may be NULL where they have no bytes, and
 * `options` always. */
tokamak_code tokamak_put(tokamak_client* client, const tokamak_id* id, const void* data, size_t data_size,
                         const void* metadata, size_t metadata_size, const tokamak_put_options* options);

/* A new object in shared memory, writable and invisible until it is sealed. Given back by
 * tokamak_seal or tokamak_abort, also where those fail. */
typedef struct tokamak_writer tokamak_writer;

/* `metadata` is written already; it may be NULL where it has no bytes, and `options` always. */
tokamak_code tokamak_create(tokamak_client* client, const tokamak_id* id, uint64_t data_size, const void* metadata,
                            size_t metadata_size, const tokamak_put_options* options, tokamak_writer** writer);

/* What to fill, until the object is sealed or aborted. It begins at a multiple of 64; fresh memory
 * holds whatever lay there before. Of NULL: NULL and 0. */
void* tokamak_writer_data(tokamak_writer* writer);
size_t tokamak_writer_size(const tokamak_writer* writer);
void* tokamak_writer_metadata(tokamak_writer* writer);
size_t tokamak_writer_metadata_size(const tokamak_writer* writer);

/* Makes the object visible, for good; NULL is TOKAMAK_INVALID_ARGUMENT here. Whatever comes back,
 * the memory must not be written any more; tokamak::MutableBuffer::Seal says what each error
 * means. */
tokamak_code tokamak_seal(tokamak_writer* writer);

/* Drops the object. After an error it is dropped all the same, once the daemon comes to it. */
tokamak_code tokamak_abort(tokamak_writer* writer);

/* ---- Getting ---- */

/* A sealed object, read in place: while this lives its bytes neither move nor change, also when it
 * is deleted. Given back by tokamak_buffer_release. */
typedef struct tokamak_buffer tokamak_buffer;

/* The object, from here or from another node, waiting up to `timeout` for one that does not exist
 * yet. After it: TOKAMAK_NOT_FOUND (no node holds it) or TOKAMAK_DEADLINE_EXCEEDED. */
tokamak_code tokamak_get(tokamak_client* client, const tokamak_id* id, int64_t timeout, tokamak_buffer** buffer);

/* Many at once: waits until all are here, or `timeout`. buffers[i] is that of ids[i], or NULL, and
 * codes[i], unless `codes` is NULL, says why. TOKAMAK_OK: all came. Otherwise the first error, with
 * the buffers of those that came, to be given back all the same; only where an argument is wrong
 * nothing is written. */
tokamak_code tokamak_get_many(tokamak_client* client, const tokamak_id* ids, size_t count, int64_t timeout,
                              tokamak_buffer** buffers, tokamak_code* codes);

/* The bytes, until the buffer is given back. Data begins at a multiple of 64. Of NULL: NULL and
 * 0. */
const void* tokamak_buffer_data(const tokamak_buffer* buffer);
size_t tokamak_buffer_size(const tokamak_buffer* buffer);
const void* tokamak_buffer_metadata(const tokamak_buffer* buffer);
size_t tokamak_buffer_metadata_size(const tokamak_buffer* buffer);

void tokamak_buffer_release(tokamak_buffer* buffer);

/* ---- Gets under way: tokamak_gets_make ... tokamak_gets_free ---- */

/* Ends calls that wait with it: they return TOKAMAK_CANCELLED. It stays fired until it is reset.
 * Given back by tokamak_interrupt_free, when no call waits with it. It takes two descriptors of the
 * process. */
typedef struct tokamak_interrupt tokamak_interrupt;
tokamak_code tokamak_interrupt_make(tokamak_interrupt** interrupt);
void tokamak_interrupt_fire(const tokamak_interrupt* interrupt); /* also from a signal handler */
void tokamak_interrupt_reset(const tokamak_interrupt* interrupt);
int tokamak_interrupt_fired(const tokamak_interrupt* interrupt); /* 1 or 0; of NULL: 0 */
void tokamak_interrupt_free(tokamak_interrupt* interrupt);

#define TOKAMAK_MAX_PENDING 2048

/* Gets of one client that are under way at once, without a thread for each; tokamak/gets.h says
 * more. At most TOKAMAK_MAX_PENDING of a client. May outlive the client. */
typedef struct tokamak_gets tokamak_gets;

/* How one get ended. */
typedef struct tokamak_answer {
  uint64_t number; /* that tokamak_gets_begin gave it */
  tokamak_id id;
  int32_t code;           /* a tokamak_code; of an error tokamak_error() has the words */
  tokamak_buffer* buffer; /* TOKAMAK_OK: the object, to be given back; else NULL */
  uint64_t reserved[4];   /* 0 */
} tokamak_answer;

tokamak_code tokamak_gets_make(tokamak_client* client, tokamak_gets** gets);

/* Begins a get, which leaves with the next send, next or cancel: what is begun together leaves
 * together. `number` may be NULL. */
tokamak_code tokamak_gets_begin(tokamak_gets* gets, const tokamak_id* id, int64_t timeout, uint64_t* number);
tokamak_code tokamak_gets_send(tokamak_gets* gets);

/* The next get that has ended, waiting up to `timeout`: TOKAMAK_OK, whatever became of it.
 * TOKAMAK_DEADLINE_EXCEEDED: none yet. TOKAMAK_FAILED_PRECONDITION: none is pending. `interrupt`
 * may be NULL. */
tokamak_code tokamak_gets_next(tokamak_gets* gets, int64_t timeout, const tokamak_interrupt* interrupt,
                               tokamak_answer* answer);

void tokamak_gets_cancel(tokamak_gets* gets, uint64_t number);
size_t tokamak_gets_pending(const tokamak_gets* gets); /* of NULL: 0 */

/* For poll and epoll: readable while tokamak_gets_next may have something without waiting. It is
 * closed with the gets. */
tokamak_code tokamak_gets_descriptor(tokamak_gets* gets, int* descriptor);

/* Cancels what is pending. */
void tokamak_gets_free(tokamak_gets* gets);

/* ---- Waiting ---- */

/* Where objects are waited for. */
typedef enum tokamak_scope TOKAMAK_ANY_INT { TOKAMAK_SCOPE_LOCAL = 0, TOKAMAK_SCOPE_ANYWHERE = 1 } tokamak_scope;

#define TOKAMAK_MAX_WAITED 2048

/* Waits until `wanted` of the at most TOKAMAK_MAX_WAITED objects exist, or until `timeout`: then
 * TOKAMAK_OK as well, and ready[i] is 1 for those that do, and 0 for the others. Nothing is
 * moved. */
tokamak_code tokamak_wait(tokamak_client* client, const tokamak_id* ids, size_t count, size_t wanted, int64_t timeout,
                          tokamak_scope scope, uint8_t* ready);

/* ---- Where copies are ----
 *
 * codes[i], unless `codes` is NULL, says what became of ids[i]. TOKAMAK_OK: all went well.
 * Otherwise the first error; only where an argument is wrong nothing is written. */

/* Brings objects to this node, and hands them to nobody. */
tokamak_code tokamak_prefetch(tokamak_client* client, const tokamak_id* ids, size_t count, int64_t timeout,
                              tokamak_code* codes);

/* The same, and none of them is evicted from this node until it is unpinned, by whichever
 * program. */
tokamak_code tokamak_pin(tokamak_client* client, const tokamak_id* ids, size_t count, int64_t timeout,
                         tokamak_code* codes);
tokamak_code tokamak_unpin(tokamak_client* client, const tokamak_id* id);

/* Has the node of that name bring objects to itself. tokamak::Client::Push says what each error
 * means. */
tokamak_code tokamak_push(tokamak_client* client, const tokamak_id* ids, size_t count, const char* node,
                          int64_t timeout, tokamak_code* codes);

/* ---- Looking ---- */

typedef enum tokamak_state {
  TOKAMAK_STATE_CREATED = 0, /* not sealed yet: only its creator sees its bytes */
  TOKAMAK_STATE_SEALED = 1,
  TOKAMAK_STATE_EVICTED = 2, /* gone, but for those who hold it */
  TOKAMAK_STATE_DELETED = 3, /* the same */
  TOKAMAK_STATE_ABORTED = 4
} tokamak_state;

typedef enum tokamak_origin {
  TOKAMAK_ORIGIN_CREATED_HERE = 0, /* put on this node: kept until it is deleted */
  TOKAMAK_ORIGIN_PULLED = 1        /* a copy of another node's: evicted where room is needed */
} tokamak_origin;

/* An object as it is on one node. */
typedef struct tokamak_object_info {
  tokamak_id id;
  int32_t state;  /* a tokamak_state */
  int32_t origin; /* a tokamak_origin */
  uint64_t data_size;
  uint64_t metadata_size;
  uint64_t pins;             /* buffers that read it now, of all programs */
  uint64_t age_microseconds; /* since its creation on this node */
  uint64_t reserved[4];      /* 0 */
} tokamak_object_info;

/* Whether the object is sealed on this node: *here is 1 or 0. */
tokamak_code tokamak_contains(tokamak_client* client, const tokamak_id* id, int* here);

/* The first objects of this node in any state, by id, at most `capacity`; those after `after`
 * unless that is NULL, which continues where an earlier list ended. *count says how many were
 * written; fewer than `capacity`: there are no more. */
tokamak_code tokamak_list(tokamak_client* client, const tokamak_id* after, tokamak_object_info* objects,
                          size_t capacity, size_t* count);

/* Several texts, such as names of nodes or objects. Given back by tokamak_names_free. */
typedef struct tokamak_names tokamak_names;
size_t tokamak_names_count(const tokamak_names* names);                  /* of NULL: 0 */
const char* tokamak_names_at(const tokamak_names* names, size_t number); /* beyond the last: NULL */
void tokamak_names_free(tokamak_names* names);

/* As tokamak_list, and *names has the names that these objects were put with, in their order: ""
 * where none is kept. */
tokamak_code tokamak_list_named(tokamak_client* client, const tokamak_id* after, tokamak_object_info* objects,
                                size_t capacity, size_t* count, tokamak_names** names);

/* How an object is on this node, and which nodes hold it. TOKAMAK_NOT_FOUND: no node does. *here is
 * 1 where it is here, else only id and sizes of `object` count. *holders has names of nodes, at
 * most 64, or is NULL where the directory did not answer. Outputs that are NULL are not asked
 * for. */
tokamak_code tokamak_stat(tokamak_client* client, const tokamak_id* id, tokamak_object_info* object, int* here,
                          tokamak_names** holders);

/* The name that an object was put with, as the only text of *name: "" where none is kept.
 * TOKAMAK_NOT_FOUND: no node holds the object. */
tokamak_code tokamak_get_name(tokamak_client* client, const tokamak_id* id, tokamak_names** name);

/* XXH64 of data and metadata of an object on this node. */
tokamak_code tokamak_hash(tokamak_client* client, const tokamak_id* id, uint64_t* hash);

/* ---- Managing ---- */

/* Deletes the object on all nodes: no get that begins after TOKAMAK_OK returns it, on any node; who
 * reads it already goes on reading. tokamak::Client::Delete says what each error means. */
tokamak_code tokamak_delete(tokamak_client* client, const tokamak_id* id);

/* ---- The cluster ---- */

/* The nodes of the cluster. Given back by tokamak_nodes_free. */
typedef struct tokamak_nodes tokamak_nodes;

/* Texts live as long as the tokamak_nodes that this is of. */
typedef struct tokamak_node_info {
  const char* name;
  const char* address;  /* where its transport listens, for people */
  const char* device;   /* RDMA device, such as ibv:mlx5_0 */
  uint64_t incarnation; /* another one each time that it was started */
  uint64_t capacity;    /* of its store, in bytes */
  int32_t is_this;      /* 1: the node that answered */
  uint64_t reserved[4]; /* 0 */
} tokamak_node_info;

tokamak_code tokamak_get_nodes(tokamak_client* client, tokamak_nodes** nodes);
size_t tokamak_nodes_count(const tokamak_nodes* nodes);                               /* of NULL: 0 */
const tokamak_node_info* tokamak_nodes_at(const tokamak_nodes* nodes, size_t number); /* beyond the last: NULL */
void tokamak_nodes_free(tokamak_nodes* nodes);

typedef enum tokamak_node_state {
  TOKAMAK_NODE_ALIVE = 0,
  TOKAMAK_NODE_SUSPECTED = 1, /* it did not answer */
  TOKAMAK_NODE_SILENT = 2     /* the directory has not heard of it for its lease */
} tokamak_node_state;

/* One that a node counts; docs/metrics.md has them. */
typedef struct tokamak_node_number {
  const char* name; /* unit last: store_used_bytes; totals since the start end in _total */
  uint64_t value;
  uint64_t reserved[2]; /* 0 */
} tokamak_node_number;

/* All nodes, as the others see them. Given back by tokamak_cluster_free. */
typedef struct tokamak_cluster tokamak_cluster;

/* Texts and numbers live as long as the tokamak_cluster that this is of. */
typedef struct tokamak_viewed_node {
  tokamak_node_info info;
  int32_t state;                      /* a tokamak_node_state */
  uint64_t unheard_microseconds;      /* since it answered, or the directory heard of it */
  const char* page;                   /* "10.0.0.1:9464", where it answers HTTP; "": nowhere, or unknown */
  const tokamak_node_number* numbers; /* what it says of itself; NULL: it did not say */
  size_t numbers_count;
  uint64_t reserved[4]; /* 0 */
} tokamak_viewed_node;

/* All nodes with their states and what each says of itself, by name, whichever node is asked. Takes
 * some two seconds where one does not answer. */
tokamak_code tokamak_get_cluster(tokamak_client* client, tokamak_cluster** cluster);
/* 1: the directory answered. 0: these are the nodes that it named last. Of NULL: 0. */
int tokamak_cluster_located(const tokamak_cluster* cluster);
size_t tokamak_cluster_count(const tokamak_cluster* cluster); /* of NULL: 0 */
/* Beyond the last: NULL. */
const tokamak_viewed_node* tokamak_cluster_at(const tokamak_cluster* cluster, size_t number);
void tokamak_cluster_free(tokamak_cluster* cluster);

/* ---- Events: tokamak_subscribe ... tokamak_unsubscribe ---- */

typedef enum tokamak_event_kind {
  TOKAMAK_EVENT_SEALED = 0,
  TOKAMAK_EVENT_DELETED = 1,
  TOKAMAK_EVENT_EVICTED = 2,
  TOKAMAK_EVENT_REFUSED = 3 /* dropped: another content has its id in the cluster */
} tokamak_event_kind;

/* What happened to an object on the node. A later daemon may tell of more kinds. */
typedef struct tokamak_event {
  tokamak_id id;
  int32_t kind;   /* a tokamak_event_kind */
  int32_t origin; /* a tokamak_origin */
  uint64_t data_size;
  uint64_t metadata_size;
  uint64_t reserved[2]; /* 0 */
} tokamak_event;

/* What is sealed, deleted and evicted on the client's node from now on; a connection of its own. */
typedef struct tokamak_subscription tokamak_subscription;

tokamak_code tokamak_subscribe(tokamak_client* client, tokamak_subscription** subscription);

/* What happened since the last call, in order, at least one and at most `capacity`, waiting up to
 * `timeout` for something to happen (TOKAMAK_DEADLINE_EXCEEDED). *dropped, unless NULL: how many
 * were lost before these, because this subscriber did not keep up; then *count may be 0.
 * TOKAMAK_UNAVAILABLE: the connection is lost; subscribe again. */
tokamak_code tokamak_next_events(tokamak_subscription* subscription, int64_t timeout, tokamak_event* events,
                                 size_t capacity, size_t* count, uint64_t* dropped);

/* The name of the object of events[number] of the last tokamak_next_events, "" where none is kept.
 * It lives until the next one. Beyond the last: NULL. */
const char* tokamak_event_name(const tokamak_subscription* subscription, size_t number);

/* For poll and epoll: readable while tokamak_next_events has something without waiting, unless the
 * last call left some for want of room. Closed with the subscription. Of NULL: -1. */
int tokamak_subscription_descriptor(const tokamak_subscription* subscription);

void tokamak_unsubscribe(tokamak_subscription* subscription);

#ifdef __cplusplus
} /* extern "C" */
#endif
