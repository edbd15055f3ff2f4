/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether something below the roots of history may have changed since they were listed last.
 *
 * The agent owns an inotify instance, made for the first listing. A worker that lists sets a watch
 * on each directory before it reads it, on the very same instance, which it inherits; so what
 * happens from then on is in the instance's queue, and to ask is one system call that reads
 * nothing. Watches are for one event: a build that writes a thousand files into a directory pays
 * for the first of them, the queue stays as short as the list of directories, and a listing sets
 * them again. That a watch went, for whatever reason, is an event too, so none is ever lost
 * silently.
 *
 * What the queue cannot tell (a listing under way, or one that did not come to its end, or did not
 * get all its watches) is in a page that is shared with the workers. In doubt it is not clean.
 */

#include <stdbool.h>
#include <stdint.h>

/* Shared. Each listing has a number; the last one that watches everything is `whole`. */
struct history_marks {
    _Atomic uint64_t begun;
    _Atomic uint64_t whole;
};

struct history_watch {
    int fd; /* inotify; -1: there was no listing yet, or there is none to be had */
    struct history_marks *marks; /* NULL: as fd */
};

#define HISTORY_WATCH_NONE ((struct history_watch){.fd = -1})

/* --- the agent --- */

/* Before a worker that lists is forked. What fails is what is not clean later. */
void history_watch_prepare(struct history_watch *watch);
bool history_watch_is_clean(const struct history_watch *watch);
void history_watch_release(struct history_watch *watch);

/* --- a worker --- */

struct history_arming {
    const struct history_watch *watch;
    uint64_t number;
    bool failed; /* some directory is not watched */
};

/* Forgets what has happened so far: everything is looked at now. */
void history_arming_begin(struct history_arming *arming, const struct history_watch *watch);
/* Watches the directory that fd is at. */
void history_arming_add(struct history_arming *arming, int fd);
/* Watches a file itself: one that has more names than the one that it was found by. */
void history_arming_add_file(struct history_arming *arming, int dir_fd, const char *name);
/* Watches for something of any name to appear in it: a root that is not there yet. */
void history_arming_add_parent(struct history_arming *arming, int fd);
/* Whether all is watched: from now on the agent may find it clean. */
bool history_arming_end(struct history_arming *arming);
