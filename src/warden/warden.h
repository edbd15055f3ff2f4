/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The warden: the machine's parts that sandboxes are made of, the sandboxes, and the connections
 * over which cellad asks for them. One thread, one loop; nothing in it waits for anything but
 * starting up and shutting down.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "warden/cgroup.h"
#include "warden/ids.h"
#include "warden/image.h"
#include "warden/meter.h"
#include "warden/net.h"
#include "warden/record.h"
#include "warden/resctrl.h"
#include "warden/sandbox.h"
#include "warden/source.h"
#include "warden/stage.h"
#include "warden/storage.h"
#include "warden/undertaker.h"
#include "warden/volume_keeper.h"

struct warden_options {
    const char *data;
    const char *agent; /* path of the agent's program */
    int listen_fd;     /* -1: take no connections */
    uid_t user;        /* cellad's; only it and root may connect */
    gid_t group;
    uint64_t volume_size; /* that it may grow to; 0: no limit but the reserve */
    struct volume_reserve reserve;
    enum storage_kind storage;
    struct net_options net;
    const char *fail_at; /* for tests */
};

struct connection {
    struct connection *next;
    struct warden *warden;
    uint64_t number;
    bool egress;    /* of the egress process, which may ask for little */
    bool greeted;   /* it has said HELLO */
    uint64_t epoch; /* that it named there; see struct warden_hello */
    struct source source;
    struct buf in, out;
    bool waits_to_write;
};

/* A child that removes a layer, which takes as long as the layer is big. */
struct removal {
    struct removal *next;
    char id[PLAN_ID_MAX + 1];
    pid_t pid;
    struct waiter *waiters;
};

struct warden {
    struct warden_options options;
    char data[PATH_MAX]; /* real path */
    char instance[INSTANCE_ID_LEN + 1];
    char boot_id[BOOT_ID_LEN + 1];
    int data_fd, agents_fd, records_fd, images_fd;
    int agent_fd; /* the agent's program, in memory of our own */

    struct stage stage;
    struct storage storage;
    struct cgroups cgroups;
    struct resctrl resctrl;
    struct ids ids;
    struct net net;
    struct image host;
    struct undertaker undertaker;

    int epoll_fd;
    struct source listener, egress_listener, signals;
    struct connection *connections;
    uint64_t connections_made;
    uint64_t epoch;            /* the highest that a control connection has named */
    struct sandbox *sandboxes; /* by id */
    struct sandbox *pressing;  /* those with a deadline, in no order: a few of thousands */
    struct removal *removals;
    struct meter meter;
    struct volume_keeper volume;
    struct copy *copies;
    struct resize *resizes;
    unsigned reclaims; /* children that take memory back */
    bool stopping;
};

/* Everything up to the first request: folders, volume, image, adoption of what runs. */
int warden_init(struct warden *warden, const struct warden_options *options, struct error *err);

/* Serves until SIGTERM. */
int warden_run(struct warden *warden, struct error *err);

/* Ends every sandbox and takes down what the warden has made outside of the data folder. */
int warden_shutdown(struct warden *warden, struct error *err);

/* Milliseconds of a clock that only goes forward. */
uint64_t warden_now_ms(void);

/* ---- connections (connection.c) ---- */

/* egress: from the socket that only the egress process connects to. */
int connection_accept_all(struct warden *warden, int listen_fd, bool egress);
void connection_close(struct connection *connection);
struct connection *connection_find(struct warden *warden, uint64_t number);
/* A control connection says HELLO. With a higher epoch than any before, the connections of earlier
 * ones are closed, and what is unread in them is dropped. UNAVAILABLE with a lower one. */
int connection_greet(struct connection *connection, uint64_t epoch, struct error *err);
/* Whether requests of this connection still count: UNAVAILABLE when a later epoch has taken over.
 */
int connection_check_epoch(const struct connection *connection, struct error *err);
/* Sends what is in `out`; a peer that does not read is cut off. */
void connection_flush(struct connection *connection);
/* Sends one whole frame with a descriptor (borrowed), past `out`: at once, or not at all. */
int connection_send_fd(struct connection *connection, const struct buf *frame, int fd,
                       struct error *err);

/* ---- requests (request.c) ---- */

/* Handles one frame; answers at once or by a waiter. -1: the peer does not speak our language. */
int request_handle(struct connection *connection, const struct frame_header *header,
                   struct slice payload, struct error *err);

/* Adds whoever sent the request to those who are answered later. */
int waiter_add(struct waiter **waiters, const struct connection *connection, uint32_t id,
               struct error *err);
/* Answers to waiters, which they free. `err` NULL: OK. */
void answer_waiters(struct warden *warden, struct waiter **waiters, const struct error *err);
void answer_started(struct sandbox *sandbox);
void announce_exit(struct sandbox *sandbox);
struct waiter *waiter_new(struct waiter from);

/* Answers WARDEN_MACHINE (machine.c). */
void machine_answer(struct connection *connection, uint32_t id);
/* Answers WARDEN_STATS (stats.c). */
void stats_answer(struct connection *connection, uint32_t id, const struct warden_stats *request);
/* ---- copies (copy.c) and new limits (resize.c): 0 when it will be answered later ---- */

int copy_request(struct connection *connection, uint32_t id, const struct warden_clone *request,
                 struct error *err);
/* The ids that copies are made for. Ends when `fn` does not return 0, with that. */
int copy_each(const struct warden *warden, storage_fn fn, void *arg);
/* Whether a copy of, or for, this sandbox is being made, or is to be. */
bool copy_uses(const struct warden *warden, const char *id);
/* Whether one of this sandbox is being made right now. */
bool copy_stands_on(const struct warden *warden, const char *id);
/* Whether a sandbox must not be started: its layer is not there yet, or is being read. */
bool copy_blocks_start(const struct warden *warden, const char *id);
/* Gives up the copy that is to become this sandbox's layer. */
void copy_cancel(struct warden *warden, const char *id);
void copy_cancel_all(struct warden *warden);

int resize_request(struct connection *connection, uint32_t id, const struct warden_update *request,
                   struct error *err);

int fits_request(struct connection *connection, uint32_t id, const struct warden_fits *request,
                 struct error *err);

/* What lets the agent limit single commands (delegate.c). */
int delegate_request(struct connection *connection, uint32_t id,
                     const struct warden_delegate *request, struct error *err);

/* A child that removes the layer `id`, which storage_detach() has put aside. */
int removal_start(struct warden *warden, const char *id, struct waiter **waiters,
                  struct error *err);

/* ---- sandboxes ---- */

struct sandbox *sandbox_find(struct warden *warden, const char *id);
struct sandbox *sandbox_new(struct warden *warden, const char *id);
void sandbox_free(struct sandbox *sandbox);

/* When sandbox_timer() is called; 0: never. */
void sandbox_set_deadline(struct sandbox *sandbox, uint64_t time_ms);
