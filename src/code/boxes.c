/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which contexts there are. The truth is in each sandbox's agent, as processes with names of a
 * certain kind; here is what was learned of it, forgotten when a sandbox was started anew, and
 * looked up again when it is not known.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "base/timetext.h"
#include "code/state.h"
#include "sandbox/processes.h"

enum { ID_RANDOM = 20, BOXES_KEPT = 256 };

static const char name_prefix[] = "code.";
static const char default_prefix[] = "default-";

int code_new(struct loop *loop, struct sandboxes *sandboxes, struct code **ret_code,
             struct error *err)
{
    struct code *code = calloc(1, sizeof(*code));
    if (code == NULL)
        return error_sys(err, "allocating");
    code->loop = loop;
    code->sandboxes = sandboxes;
    sandboxes_set_ahead(sandboxes, kernel_ahead);
    *ret_code = code;
    return 0;
}

/* --- holding --- */

static void box_unref(struct box *box)
{
    if (--box->refs > 0)
        return;
    struct box *current;
    HASH_FIND(by_id, box->code->boxes, box->id, strlen(box->id), current);
    if (current == box)
        HASH_DELETE(by_id, box->code->boxes, box);
    free(box);
}

void context_hold(struct context *c)
{
    c->refs++;
}

void context_drop(struct context *c)
{
    if (--c->refs > 0)
        return;
    kernel_close(c);
    buf_release(&c->in);
    free(c->cwd);
    free(c->user);
    free(c->env);
    free(c);
}

void context_forget(struct context *c)
{
    struct box *box = c->box;
    if (box == NULL)
        return;
    struct context **at = &box->contexts;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    c->box = NULL;
    box->count--;
    context_drop(c);
    box_unref(box);
}

/* When it was the last one that we were connected to, the sandbox has probably gone with it: then
 * nothing is kept, and whoever asks next asks the agent. Unless there is something that the agent
 * does not know: with which variables to start it again. */
void context_lost(struct context *c)
{
    struct box *box = c->box;
    kernel_close(c);
    if (box == NULL || c->ending > 0)
        return;
    for (const struct context *other = box->contexts; other != NULL; other = other->next)
        if (other->link != NULL || other->busy || other->ending > 0 || other->env_len > 0)
            return;
    box->refs++;
    while (box->contexts != NULL)
        context_forget(box->contexts);
    box_unref(box);
}

static int lock(struct context *c, bool over_others, struct error *err)
{
    while (c->busy || (c->ending > 0 && !over_others))
        if (co_cond_wait(c->code->loop, &c->free, -1, err) < 0)
            return -1;
    if (c->box == NULL)
        return error_set(err, ERROR_CODE_CONTEXT_NOT_FOUND,
                         "the code context \"%s\" was deleted meanwhile", c->id);
    c->busy = true;
    return 0;
}

int context_lock(struct context *c, struct error *err)
{
    return lock(c, false, err);
}

int context_lock_first(struct context *c, struct error *err)
{
    return lock(c, true, err);
}

/* The one that waits longest may be one that has to go on waiting. */
void context_unlock(struct context *c)
{
    c->busy = false;
    c->used_ms = time_now_ms();
    if (c->ending > 0 || c->box == NULL)
        co_cond_wake_all(&c->free);
    else
        co_cond_wake(&c->free);
}

static void forget_all(struct code *code)
{
    struct box *box, *next;
    HASH_ITER(by_id, code->boxes, box, next)
    {
        box->refs++;
        while (box->contexts != NULL)
            context_forget(box->contexts);
        box_unref(box);
    }
}

void code_stop(struct code *code)
{
    code->stopping = true;
    while (code->drains > 0)
        if (co_cond_wait(code->loop, &code->drained, -1, NULL) < 0)
            break;
    forget_all(code);
}

void code_free(struct code *code)
{
    if (code == NULL)
        return;
    forget_all(code);
    free(code);
}

/* --- names --- */

void context_process_name(const struct context *c, char name[PROCESS_NAME_SIZE])
{
    snprintf(name, PROCESS_NAME_SIZE, "%s%s.%s", name_prefix, c->language->name, c->id);
}

void default_process_name(const struct language *language, char name[PROCESS_NAME_SIZE])
{
    snprintf(name, PROCESS_NAME_SIZE, "%s%s.%s%s", name_prefix, language->name, default_prefix,
             language->name);
}

const char *code_default_id(struct arena *arena, const char *language)
{
    return arena_printf(arena, "%s%s", default_prefix, language);
}

const struct language *context_default_of(const char *id)
{
    size_t len = strlen(default_prefix);
    return strncmp(id, default_prefix, len) == 0 ? language_find(id + len) : NULL;
}

/* Reads "code.LANGUAGE.ID". */
static bool read_name(const char *name, const struct language **ret_language, const char **ret_id)
{
    char language[32];
    if (name == NULL || strncmp(name, name_prefix, strlen(name_prefix)) != 0)
        return false;
    name += strlen(name_prefix);
    const char *dot = strchr(name, '.');
    if (dot == NULL || (size_t)(dot - name) >= sizeof(language) || dot == name)
        return false;
    snprintf(language, sizeof(language), "%.*s", (int)(dot - name), name);
    *ret_language = language_find(language);
    *ret_id = dot + 1;
    size_t len = strspn(dot + 1, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return *ret_language != NULL && strcmp((*ret_language)->name, language) == 0 && len > 0 &&
           dot[1 + len] == '\0' && len < CONTEXT_ID_SIZE;
}

/* --- the cache --- */

static struct context *context_add(struct box *box, const char *id, const struct language *language)
{
    struct context *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    snprintf(c->id, sizeof(c->id), "%s", id);
    c->language = language;
    c->box = box;
    c->code = box->code;
    c->refs = 1;
    buf_init(&c->in, CODE_FRAME_MAX + (1 << 20));
    c->next = box->contexts;
    box->contexts = c;
    box->count++;
    box->refs++;
    return c;
}

static struct context *box_find(const struct box *box, const char *id)
{
    for (struct context *c = box->contexts; c != NULL; c = c->next)
        if (strcmp(c->id, id) == 0)
            return c;
    return NULL;
}

static char *copy(const char *text)
{
    char *made = text == NULL ? NULL : strdup(text);
    if (text != NULL && made == NULL)
        abort();
    return made;
}

/* One that was ended on purpose, or whose interpreter was not there (a shell says 127), is no
 * context any more; one that ended by itself is started again by the next run. */
static void adopt(struct box *box, const struct agent_process *process)
{
    const struct language *language;
    const char *id;
    if (!read_name(process->name, &language, &id) || process->state == PROCESS_KILLED ||
        process->state == PROCESS_STOPPED ||
        (process->state == PROCESS_EXITED &&
         (process->exit_code == NO_SUCH_COMMAND || process->exit_code == CANNOT_BE_RUN)) ||
        box->count >= CODE_CONTEXTS_MAX)
        return;
    struct context *c = box_find(box, id);
    if (c == NULL) {
        c = context_add(box, id, language);
        c->cwd = copy(process->cwd);
        c->user = copy(process->user);
    }
    /* Of several with one name the newest counts, and it comes last. */
    c->started = process->state == PROCESS_RUNNING;
    c->lacking = c->started && !box->plain && (int64_t)process->started_ms < box->made_ms;
    c->pid = process->pid;
    c->started_ms = process->started_ms;
}

/* Of those that another server has made. Any of them may be forgotten while one is asked for. */
static void learn_environments(struct box *box, const struct code_place *place)
{
    for (struct context *c = box->contexts, *next; c != NULL; c = next) {
        context_hold(c);
        if (c->started && c->env == NULL && context_default_of(c->id) == NULL)
            context_learn_env(c, place);
        next = c->box == NULL ? NULL : c->next;
        context_drop(c);
    }
}

static int look(struct box *box, const struct code_place *place, struct error *err)
{
    struct code *code = box->code;
    struct arena *arena = arena_new();
    struct agent_process *items;
    size_t count;
    box->looking = true;
    int rc = sandbox_process_list(code->sandboxes, place->workspace, place->sandbox, arena, &items,
                                  &count, err);
    for (size_t i = 0; rc == 0 && i < count; i++)
        adopt(box, &items[i]);
    learn_environments(box, place);
    box->looking = false;
    box->known = box->known || rc == 0;
    co_cond_wake_all(&box->looked);
    arena_free(arena);
    return rc;
}

/* What is kept of sandboxes that nobody asked about lately can be learned again: of those that went
 * without a word nothing is to stay for ever. */
static void sweep(struct code *code)
{
    struct box *box, *next;
    if (HASH_CNT(by_id, code->boxes) < BOXES_KEPT)
        return;
    HASH_ITER(by_id, code->boxes, box, next)
    {
        bool idle = !box->looking;
        for (const struct context *c = box->contexts; c != NULL; c = c->next)
            idle = idle && !c->busy && c->link == NULL && c->refs == 1;
        if (!idle || box->refs != box->count)
            continue;
        box->refs++;
        while (box->contexts != NULL)
            context_forget(box->contexts);
        box_unref(box);
    }
}

int box_enter(struct code *code, const struct code_place *place, struct box **ret_box,
              struct error *err)
{
    struct sandbox_identity who;
    struct box *box;
    if (sandbox_identify(code->sandboxes, place->workspace, place->sandbox, &who, err) < 0)
        return -1;
    HASH_FIND(by_id, code->boxes, who.id, strlen(who.id), box);
    if (box != NULL && box->start != who.start) { /* nothing of it is there any more */
        box->refs++;
        while (box->contexts != NULL)
            context_forget(box->contexts);
        HASH_DELETE(by_id, code->boxes, box);
        box_unref(box);
        box = NULL;
    }
    if (box == NULL) {
        sweep(code);
        box = calloc(1, sizeof(*box));
        if (box == NULL)
            abort();
        box->code = code;
        box->start = who.start;
        box->made_ms = who.made_ms;
        box->plain = who.plain;
        snprintf(box->id, sizeof(box->id), "%s", who.id);
        HASH_ADD(by_id, code->boxes, id, strlen(box->id), box);
    }
    box->refs++;
    int rc = 0;
    while (rc == 0 && !box->known)
        rc = box->looking ? co_cond_wait(code->loop, &box->looked, -1, err) : look(box, place, err);
    if (rc < 0) {
        box_unref(box);
        return -1;
    }
    *ret_box = box;
    return 0;
}

void box_leave(struct box **box)
{
    if (*box != NULL)
        box_unref(*box);
}

static int check_room(const struct box *box, struct error *err)
{
    if (box->count < CODE_CONTEXTS_MAX)
        return 0;
    return error_set(err, ERROR_LIMIT_EXCEEDED,
                     "the sandbox has %d code contexts already: delete one first",
                     CODE_CONTEXTS_MAX);
}

int context_find(struct code *code, const struct code_place *place, const char *id,
                 const struct language *language, struct context **ret_context, struct error *err)
{
    _cleanup_box_ struct box *box = NULL;
    char made[CONTEXT_ID_SIZE];
    if (box_enter(code, place, &box, err) < 0)
        return -1;
    if (id == NULL) {
        snprintf(made, sizeof(made), "%s%s", default_prefix, language->name);
        id = made;
    }
    struct context *c = box_find(box, id);
    if (c == NULL) {
        language = context_default_of(id);
        if (language == NULL)
            return error_set(err, ERROR_CODE_CONTEXT_NOT_FOUND,
                             "there is no code context \"%.64s\" in this sandbox", id);
        if (check_room(box, err) < 0)
            return -1;
        snprintf(made, sizeof(made), "%s%s", default_prefix, language->name);
        c = box_find(box, made);
        if (c == NULL)
            c = context_add(box, made, language);
    }
    context_hold(c);
    *ret_context = c;
    return 0;
}

int box_make_context(struct box *box, const struct code_context_request *request,
                     const struct language *language, struct context **ret_context,
                     struct error *err)
{
    char id[CONTEXT_ID_SIZE];
    struct context *c = request->id == NULL ? NULL : box_find(box, request->id);
    if (c != NULL) {
        context_hold(c);
        *ret_context = c;
        return 0;
    }
    if (check_room(box, err) < 0)
        return -1;
    if (request->id != NULL)
        snprintf(id, sizeof(id), "%s", request->id);
    else
        random_id(id, ID_RANDOM);
    c = context_add(box, id, language);
    c->cwd = copy(request->cwd);
    c->user = copy(request->user);
    if (request->env.len > 0) {
        c->env = malloc(request->env.len);
        if (c->env == NULL)
            abort();
        memcpy(c->env, request->env.data, request->env.len);
        c->env_len = request->env.len;
    }
    context_hold(c);
    *ret_context = c;
    return 0;
}
