/* SPDX-License-Identifier: Apache-2.0 */

#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void open_store(struct fixture *f)
{
    struct error err = {0};
    if (store_open(NULL, f->path, false, &f->store, &err) < 0)
        fail_msg("%s", err.message);
}

int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->dir, sizeof(f->dir), "/tmp/cella-test-store-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/cella.db", f->dir);
    open_store(f);
    *state = f;
    return 0;
}

int fixture_teardown(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    struct fixture *f = *state;
    store_close(f->store);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
        unlink(path);
    }
    int left = rmdir(f->dir);
    free(f);
    return left;
}

void fixture_reopen(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
    open_store(f);
}

struct store_sandbox make_sandbox(const char *id, const char *name)
{
    return (struct store_sandbox){
        .id = id,
        .workspace = "default",
        .name = name,
        .status = "creating",
        .image = "host",
        .cpu = "500m",
        .memory = "512Mi",
        .disk = "5Gi",
        .env = {"A=1\0B=two words\0", 16},
        .enabled = true,
        .created_ms = 1000,
        .updated_ms = 2000,
        .created_by = "admin",
        .updated_by = "someone",
    };
}

struct store_event make_event(uint64_t revision)
{
    return (struct store_event){"CREATE", "SUCCESS", "made", 3000, revision};
}

static void keep(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from == NULL ? "(null)" : from);
}

static int take_sandbox(void *ctx, const struct store_sandbox *row, struct error *err)
{
    struct loaded *l = ctx;
    size_t i = l->sandbox_count++;
    assert_true(i < LOADED_MAX);
    keep(l->ids[i], sizeof(l->ids[i]), row->id);
    keep(l->names[i], sizeof(l->names[i]), row->name);
    keep(l->statuses[i], sizeof(l->statuses[i]), row->status);
    l->last = *row;
    l->last_cpu_is_null = row->cpu == NULL;
    l->env_len = row->env.len;
    assert_true(row->env.len < sizeof(l->env));
    if (row->env.len > 0)
        memcpy(l->env, row->env.data, row->env.len);
    keep(l->words, sizeof(l->words), row->labels.len > 0 ? row->labels.data : NULL);
    const char *const words[] = {row->external_id, row->display_name, row->blaxel_spec,
                                 row->clone_of};
    for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
        size_t len = strlen(l->words);
        snprintf(l->words + len, sizeof(l->words) - len, " %s", words[w] == NULL ? "-" : words[w]);
    }
    return 0;
}

static int take_event(void *ctx, const char *id, const struct store_event *event, struct error *err)
{
    struct loaded *l = ctx;
    size_t i = l->event_count++;
    assert_true(i < LOADED_MAX);
    /* Of the sandbox that came before. */
    assert_string_equal(id, l->ids[l->sandbox_count - 1]);
    keep(l->events[i].id, sizeof(l->events[i].id), id);
    keep(l->events[i].type, sizeof(l->events[i].type), event->type);
    l->events[i].revision = event->revision;
    return 0;
}

void load(struct store *store, struct loaded *ret)
{
    struct error err = {0};
    *ret = (struct loaded){0};
    const struct store_load callbacks = {take_sandbox, take_event, ret};
    if (store_load_all(store, &callbacks, &err) < 0)
        fail_msg("%s", err.message);
}
