/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Nothing is kept too long: what was deleted is overwritten in the database (secure_delete), but
 * SQLite's log still holds the pages as they were until it is written over, which on a quiet server
 * may be never. So some seconds after something was deleted the log is brought into the database
 * and cut to nothing.
 *
 * On a full disk the log is kept, because somebody else might take its room: it is cut when there
 * is some again.
 *
 * That waits for the disk. It is done by a thread with a connection of its own: changes go on
 * meanwhile (PASSIVE waits for nobody), and what they wait for (TRUNCATE) is short by then.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/state.h"

enum { FORGET_AFTER_S = 5, BUSY_MS = 2000, STACK_SIZE = 256 * 1024 };

struct forgetter {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool asked, ended; /* by the mutex */
    char *path;
};

static bool cut_log(const char *path)
{
    sqlite3 *handle = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, busy = SQLITE_ERROR;
    /* A connection knows of the log once it has read something. */
    if (sqlite3_open_v2(path, &handle, flags, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(handle, BUSY_MS) == SQLITE_OK &&
        sqlite3_exec(handle, "PRAGMA user_version", NULL, NULL, NULL) == SQLITE_OK) {
        store_take_room(handle);
        sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        if (store_has_room(path))
            busy = sqlite3_wal_checkpoint_v2(handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        store_take_room(handle);
    }
    sqlite3_close(handle);
    return busy == SQLITE_OK;
}

/* Until the pause is over; false when the store is being closed. With the mutex. */
static bool pause_a_while(struct forgetter *f)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FORGET_AFTER_S;
    while (!f->ended && pthread_cond_timedwait(&f->cond, &f->mutex, &until) != ETIMEDOUT)
        ;
    return !f->ended;
}

static void *forget_run(void *arg)
{
    struct forgetter *f = arg;
    pthread_mutex_lock(&f->mutex);
    while (!f->ended) {
        if (!f->asked) {
            pthread_cond_wait(&f->cond, &f->mutex);
            continue;
        }
        if (!pause_a_while(f))
            break;
        f->asked = false;
        pthread_mutex_unlock(&f->mutex);
        bool done = cut_log(f->path);
        pthread_mutex_lock(&f->mutex);
        f->asked |= !done; /* somebody reads, or no room: again after the next pause */
    }
    pthread_mutex_unlock(&f->mutex);
    return NULL;
}

static int start_thread(struct forgetter *f)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
    int failed = pthread_create(&f->thread, &attributes, forget_run, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failed;
}

static struct forgetter *forgetter_new(const char *path)
{
    struct forgetter *f = calloc(1, sizeof(*f));
    pthread_condattr_t attributes;
    if (f == NULL || (f->path = strdup(path)) == NULL) {
        free(f);
        return NULL;
    }
    pthread_mutex_init(&f->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&f->cond, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start_thread(f) == 0)
        return f;
    free(f->path);
    free(f);
    return NULL;
}

void store_forget(struct store *store)
{
    if (store->loop == NULL)
        return; /* not a server: closing it does the same */
    if (store->forgetter == NULL) {
        const char *path = sqlite3_db_filename(store->db.handle, "main");
        if (path == NULL || path[0] == '\0' || (store->forgetter = forgetter_new(path)) == NULL)
            return;
    }
    pthread_mutex_lock(&store->forgetter->mutex);
    store->forgetter->asked = true;
    pthread_cond_signal(&store->forgetter->cond);
    pthread_mutex_unlock(&store->forgetter->mutex);
}

void store_forget_end(struct store *store)
{
    struct forgetter *f = store->forgetter;
    if (f == NULL)
        return;
    pthread_mutex_lock(&f->mutex);
    f->ended = true;
    pthread_cond_signal(&f->cond);
    pthread_mutex_unlock(&f->mutex);
    pthread_join(f->thread, NULL);
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->mutex);
    free(f->path);
    free(f);
    store->forgetter = NULL;
}
