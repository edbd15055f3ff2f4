/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The variables that a context was made with, where another server has made it: they are wanted
 * when its interpreter has to be started again, and the interpreter that runs was started with
 * them. What is found there is whatever the sandbox says; it goes back to where it came from.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "code/state.h"
#include "sandbox/files.h"

static int read_file(struct context *c, const struct code_place *place, const char *path,
                     struct arena *arena, struct buf *out, struct error *err)
{
    struct file_transfer *transfer = NULL;
    struct file_entry entry;
    size_t len = 0;
    int rc = file_read_begin(c->code->sandboxes, place->workspace, place->sandbox, path, 0,
                             ENV_BYTES_MAX, arena, &entry, &transfer, err);
    while (rc == 0 && (rc = file_read_next(transfer, &len, err)) == 0 && len > 0) {
        char *to = buf_reserve(out, len);
        rc = to == NULL ? buf_check(out, "the environment", err)
                        : file_transfer_take(transfer, to, len, err);
        if (rc == 0)
            buf_commit(out, len);
    }
    file_transfer_end(transfer);
    return rc;
}

static bool is_variable(const char *pair)
{
    size_t len = 0;
    while (isalnum((unsigned char)pair[len]) || pair[len] == '_')
        len++;
    return len > 0 && !isdigit((unsigned char)pair[0]) && pair[len] == '=';
}

/* The whole ones of them, as a list. */
static size_t keep_variables(char *data, size_t len)
{
    size_t kept = 0;
    unsigned count = 0;
    for (size_t at = 0, size; at < len && count < ENV_VARS_MAX; at += size) {
        const char *end = memchr(data + at, '\0', len - at);
        if (end == NULL)
            break;
        size = (size_t)(end - data) - at + 1;
        if (!is_variable(data + at))
            continue;
        memmove(data + kept, data + at, size);
        kept += size;
        count++;
    }
    return kept;
}

void context_learn_env(struct context *c, const struct code_place *place)
{
    _cleanup_buf_ struct buf text = BUF_INIT(2 * ENV_BYTES_MAX);
    struct arena *arena = arena_new();
    struct error err;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%llu/environ", (unsigned long long)c->pid);
    if (read_file(c, place, path, arena, &text, &err) == 0 && text.len > 0 && c->env == NULL) {
        c->env_len = keep_variables(text.data, text.len);
        c->env = buf_steal(&text);
    }
    arena_free(arena);
}
