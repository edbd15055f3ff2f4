/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, because each worker should do nothing but wait for its own answer, as separate
 * clients would. They share a counter, an error and slots that each of them writes alone.
 */
#include "client/crowd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "client/api.h"

enum { WORKERS_MAX = 128 };

/* Little memory, for thousands; a whole core, or the first command is measured as it is throttled.
 */
static const char resources[] = "{\"cpu\":\"1000m\",\"memory\":\"64Mi\",\"disk\":\"128Mi\"}";

struct work {
    struct crowd *crowd;
    atomic_int next;
    atomic_bool failed;
    pthread_mutex_t lock;
    struct error err;
};

int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static int run_one(struct crowd *crowd, struct http *http, int i, struct error *err)
{
    char name[64];
    snprintf(name, sizeof(name), "%s-%d", crowd->prefix, crowd->first + i);
    int64_t start = now_ns();
    if (crowd->kind != CROWD_DELETE) {
        if (api_create(http, name, resources, err) < 0 ||
            api_exec(http, name, crowd->command, "hi", err) < 0)
            return -1;
        crowd->ready_ns[i] = now_ns() - start;
    }
    start = now_ns();
    if (crowd->kind != CROWD_CREATE) {
        if (api_delete(http, name, err) < 0 || api_await_gone(http, name, err) < 0)
            return -1;
        crowd->gone_ns[i] = now_ns() - start;
    }
    return 0;
}

static void fail(struct work *work, const struct error *err)
{
    pthread_mutex_lock(&work->lock);
    if (!work->failed)
        work->err = *err;
    work->failed = true;
    pthread_mutex_unlock(&work->lock);
}

static void *run_worker(void *arg)
{
    struct work *work = arg;
    struct error err;
    struct http *http = calloc(1, sizeof(*http));
    if (http == NULL)
        return NULL;
    http->key = work->crowd->key;
    http->host = (char *)work->crowd->address;
    if (http_open(http, work->crowd->address, &err) < 0) {
        fail(work, &err);
    } else {
        for (int i; !work->failed && (i = work->next++) < work->crowd->count;)
            if (run_one(work->crowd, http, i, &err) < 0)
                fail(work, &err);
        http_close(http);
    }
    free(http);
    return NULL;
}

int crowd_run(struct crowd *crowd, struct error *err)
{
    struct work work = {.crowd = crowd, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[WORKERS_MAX];
    int started = 0;
    while (started < crowd->workers && started < WORKERS_MAX) {
        if (pthread_create(&threads[started], NULL, run_worker, &work) != 0) {
            error_set(&work.err, ERROR_INTERNAL, "cannot start a thread");
            work.failed = true;
            break;
        }
        started++;
    }
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    if (!work.failed)
        return 0;
    *err = work.err;
    return -1;
}
