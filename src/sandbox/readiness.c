/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The look itself runs on a coroutine of its own, because neither the database nor the warden can
 * be left half-way; whoever asks waits for it only so long.
 */

#include "sandbox/readiness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "loop/co.h"
#include "sandbox/state.h"

enum {
    FRESH_MS = 1000,
    PATIENCE_MS = 3000,
    WRITE_MS = 10 * 1000,     /* a look that writes: rarely, since some ask every second */
    DISK_FREE_MIN = 64 << 20, /* bytes: with less nothing can be made any more */
};

struct probe {
    struct readiness found;
    bool looking, looked;
    bool at_warden; /* the look under way has come so far */
    int64_t began_ms, looked_ms, wrote_ms;
    struct co_cond done;
};

static void describe(char *to, size_t size, int rc, const struct error *err)
{
    snprintf(to, size, "%s", rc == 0 ? "" : error_name(err->code)); /* strangers read it */
}

static void describe_disk(const struct sandboxes *s, char *to, size_t size)
{
    const struct machine_words *words = &s->words;
    const struct {
        uint64_t free;
        const char *where;
    } places[] = {{s->admission.disk_free, " for sandboxes"}, {words->disk_below, ""}};
    bool volume = words->flags & MACHINE_OWN_VOLUME;
    if (words->flags & MACHINE_DISK_READ_ONLY) {
        snprintf(to, size, "the sandboxes' files are read-only");
        return;
    }
    for (size_t i = volume ? 0 : 1; i < ARRAY_LEN(places); i++)
        if (places[i].free < DISK_FREE_MIN) {
            snprintf(to, size, "only %" PRIu64 " MiB are free%s", places[i].free >> 20,
                     places[i].where);
            return;
        }
}

static void look(void *arg)
{
    struct sandboxes *s = arg;
    struct probe *probe = s->probe;
    struct error err = {0};
    struct readiness found = {0};
    bool write = !probe->looked || probe->found.store[0] != '\0' ||
                 loop_now(s->loop) - probe->wrote_ms >= WRITE_MS;
    if (write)
        probe->wrote_ms = loop_now(s->loop);
    int rc = store_check(s->store, write, &err);
    describe(found.store, sizeof(found.store), rc, &err);
    if (rc < 0)
        log_warn("not ready: the database: %s", err.message);
    probe->at_warden = true;
    rc = capacity_look(s, &err);
    describe(found.warden, sizeof(found.warden), rc, &err);
    if (rc < 0)
        log_warn("not ready: the warden: %s", err.message);
    else
        describe_disk(s, found.disk, sizeof(found.disk));
    probe->found = found;
    probe->looking = false;
    probe->looked = true;
    probe->looked_ms = loop_now(s->loop);
    co_cond_wake_all(&probe->done);
    if (--s->drivers == 0)
        co_cond_wake_all(&s->idle);
}

static void start(struct sandboxes *s)
{
    struct error err;
    struct probe *probe = s->probe;
    probe->looking = true;
    probe->at_warden = false;
    probe->began_ms = loop_now(s->loop);
    s->drivers++;
    if (co_spawn(s->loop, look, s, NULL, &err) < 0) {
        probe->looking = false;
        s->drivers--;
    }
}

void sandboxes_readiness(struct sandboxes *s, struct readiness *ret_readiness)
{
    struct probe *probe = s->probe;
    struct error err;
    if (probe == NULL)
        probe = s->probe = calloc(1, sizeof(*probe));
    if (probe == NULL)
        abort();
    if (!probe->looking && (!probe->looked || loop_now(s->loop) - probe->looked_ms >= FRESH_MS))
        start(s);
    int64_t left = probe->began_ms + PATIENCE_MS - loop_now(s->loop);
    while (probe->looking && left > 0) {
        if (co_cond_wait(s->loop, &probe->done, left, &err) < 0)
            break;
        left = probe->began_ms + PATIENCE_MS - loop_now(s->loop);
    }
    *ret_readiness = probe->found;
    if (probe->looking)
        snprintf(probe->at_warden ? ret_readiness->warden : ret_readiness->store,
                 sizeof(ret_readiness->store), "no answer");
}
