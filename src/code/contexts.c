/* SPDX-License-Identifier: Apache-2.0 */

/* What callers do with contexts: make, list, start anew and end them. Which there are, boxes.c
 * knows. */

#include "base/cleanup.h"
#include "code/state.h"

static struct code_context about(const struct context *c, struct arena *arena)
{
    return (struct code_context){.id = arena_strdup(arena, c->id),
                                 .language = c->language->name,
                                 .cwd = c->cwd == NULL ? "/workspace" : arena_strdup(arena, c->cwd),
                                 .user = c->user == NULL ? "root" : arena_strdup(arena, c->user),
                                 .pid = c->pid,
                                 .started_ms = c->started_ms,
                                 .runs = c->runs,
                                 .used_ms = c->used_ms,
                                 .is_default = context_default_of(c->id) != NULL,
                                 .busy = c->busy,
                                 .dead = !c->started};
}

int code_context_create(struct code *code, const struct code_place *place,
                        const struct code_context_request *request, struct arena *arena,
                        struct code_context *ret_context, struct error *err)
{
    _cleanup_box_ struct box *box = NULL;
    _cleanup_context_ struct context *c = NULL;
    const struct language *language = language_find(request->language);
    if (language == NULL)
        return error_set(err, ERROR_CODE_LANGUAGE_UNKNOWN, "language: there is no \"%.40s\" here",
                         request->language);
    if (box_enter(code, place, &box, err) < 0 ||
        box_make_context(box, request, language, &c, err) < 0)
        return -1;
    int rc = context_lock(c, err);
    if (rc == 0) {
        rc = kernel_ready(c, place, 'A', err);
        context_unlock(c);
    }
    if (rc < 0) {
        context_forget(c);
        return -1;
    }
    *ret_context = about(c, arena);
    return 0;
}

int code_context_list(struct code *code, const struct code_place *place, struct arena *arena,
                      struct code_context **ret_items, size_t *ret_count, struct error *err)
{
    _cleanup_box_ struct box *box = NULL;
    if (box_enter(code, place, &box, err) < 0)
        return -1;
    struct code_context *items = arena_alloc(arena, (box->count + 1) * sizeof(*items));
    size_t count = box->count;
    for (struct context *c = box->contexts; c != NULL; c = c->next)
        items[--count] = about(c, arena); /* the oldest first */
    *ret_items = items;
    *ret_count = box->count;
    return 0;
}

int code_context_get(struct code *code, const struct code_place *place, const char *id,
                     struct arena *arena, struct code_context *ret_context, struct error *err)
{
    _cleanup_context_ struct context *c = NULL;
    if (context_find(code, place, id, NULL, &c, err) < 0)
        return -1;
    *ret_context = about(c, arena);
    return 0;
}

/*
 * Ends the interpreter, and takes the lock when whoever ran something in it has let go. Those that
 * wait for their turn go on waiting, so that none of them starts another one in between.
 */
static int end_and_lock(struct context *c, const struct code_place *place, struct error *err)
{
    c->ending++;
    int rc = c->started ? kernel_kill(c, place, err) : 0;
    if (rc == 0)
        rc = context_lock_first(c, err);
    if (rc == 0 && c->started && (rc = kernel_kill(c, place, err)) < 0)
        c->busy = false; /* one that was just being started when it began */
    c->ending--;
    if (rc < 0)
        co_cond_wake_all(&c->free);
    return rc;
}

int code_context_restart(struct code *code, const struct code_place *place, const char *id,
                         struct arena *arena, struct code_context *ret_context, struct error *err)
{
    _cleanup_context_ struct context *c = NULL;
    if (context_find(code, place, id, NULL, &c, err) < 0 || end_and_lock(c, place, err) < 0)
        return -1;
    int rc = kernel_ready(c, place, 'A', err);
    context_unlock(c);
    if (rc < 0)
        return -1;
    *ret_context = about(c, arena);
    return 0;
}

int code_context_delete(struct code *code, const struct code_place *place, const char *id,
                        struct error *err)
{
    _cleanup_context_ struct context *c = NULL;
    if (context_find(code, place, id, NULL, &c, err) < 0 || end_and_lock(c, place, err) < 0)
        return -1;
    context_forget(c);
    context_unlock(c);
    return 0;
}
