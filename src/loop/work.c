/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Worker threads. A job lies on the stack of the coroutine that waits for it; threads and loop
 * share only the two lists below, and an eventfd that tells the loop to look at the second one.
 */

#include "loop/work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "loop/state.h"

struct job {
    void (*fn)(void *arg);
    void *arg;
    struct co *co;
    struct job *next;
};

struct job_list {
    struct job *first;
    struct job *last;
};

struct workers {
    struct loop *loop;
    struct watch watch;
    int event_fd;
    pthread_mutex_t mutex; /* guards what follows, up to `stopping` */
    pthread_cond_t more;
    struct job_list waiting;
    struct job_list done;
    bool stopping;
    unsigned count;
    pthread_t threads[];
};

static void push(struct job_list *list, struct job *job)
{
    job->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = job;
    list->last = job;
}

static struct job *pop(struct job_list *list)
{
    struct job *job = list->first;
    if (job == NULL)
        return NULL;
    list->first = job->next;
    if (list->first == NULL)
        list->last = NULL;
    return job;
}

static void *work(void *arg)
{
    struct workers *workers = arg;
    pthread_mutex_lock(&workers->mutex);
    for (;;) {
        struct job *job = pop(&workers->waiting);
        if (job == NULL && workers->stopping)
            break;
        if (job == NULL) {
            pthread_cond_wait(&workers->more, &workers->mutex);
            continue;
        }
        pthread_mutex_unlock(&workers->mutex);
        job->fn(job->arg);
        pthread_mutex_lock(&workers->mutex);
        if (workers->done.first == NULL)
            eventfd_write(workers->event_fd, 1);
        push(&workers->done, job);
    }
    pthread_mutex_unlock(&workers->mutex);
    return NULL;
}

static void wake_done(struct workers *workers)
{
    pthread_mutex_lock(&workers->mutex);
    struct job_list done = workers->done;
    workers->done = (struct job_list){0};
    pthread_mutex_unlock(&workers->mutex);
    for (struct job *job = pop(&done); job != NULL; job = pop(&done))
        co_unpark(job->co, WAKE_EVENT);
}

static void some_done(struct watch *watch, uint32_t events)
{
    struct workers *workers = container_of(watch, struct workers, watch);
    eventfd_t count;
    eventfd_read(workers->event_fd, &count);
    wake_done(workers);
}

/* Signals are the business of the thread that runs the loop. */
static int start_threads(struct workers *workers, unsigned threads, struct error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = 0;
    while (rc == 0 && workers->count < threads) {
        rc = pthread_create(&workers->threads[workers->count], NULL, work, workers);
        if (rc == 0)
            workers->count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        errno = rc;
        return error_sys(err, "starting a worker thread");
    }
    return 0;
}

struct workers *workers_new(struct loop *loop, unsigned threads, struct error *err)
{
    struct workers *workers = calloc(1, sizeof(*workers) + threads * sizeof(pthread_t));
    if (workers == NULL) {
        error_sys(err, "making worker threads");
        return NULL;
    }
    workers->loop = loop;
    pthread_mutex_init(&workers->mutex, NULL);
    pthread_cond_init(&workers->more, NULL);
    workers->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (workers->event_fd < 0) {
        error_sys(err, "eventfd");
        workers_free(workers);
        return NULL;
    }
    if (watch_start(loop, &workers->watch, workers->event_fd, EPOLLIN, some_done, err) != 0 ||
        start_threads(workers, threads, err) != 0) {
        workers_free(workers);
        return NULL;
    }
    return workers;
}

void workers_free(struct workers *workers)
{
    if (workers == NULL)
        return;
    pthread_mutex_lock(&workers->mutex);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->more);
    pthread_mutex_unlock(&workers->mutex);
    for (unsigned i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    wake_done(workers); /* those who waited go on at the loop's next turn */
    watch_stop(&workers->watch);
    if (workers->event_fd >= 0)
        close(workers->event_fd);
    pthread_cond_destroy(&workers->more);
    pthread_mutex_destroy(&workers->mutex);
    free(workers);
}

void workers_run(struct workers *workers, void (*fn)(void *arg), void *arg)
{
    struct co *co = co_self(workers->loop);
    if (co == NULL) { /* before the loop runs, or after: nobody is kept waiting */
        fn(arg);
        return;
    }
    struct job job = {.fn = fn, .arg = arg, .co = co};
    pthread_mutex_lock(&workers->mutex);
    push(&workers->waiting, &job);
    pthread_cond_signal(&workers->more);
    pthread_mutex_unlock(&workers->mutex);
    co_park(co, -1, false);
}
