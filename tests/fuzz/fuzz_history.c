/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What git says of a history, with names and messages that a sandbox may have made, and the list
 * of executions: no crash, nothing past the bounds of an answer, and ids that are of an id's form
 * or left as they are.
 */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/history_look.h"
#include "sandbox/history_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 3 };

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_log(struct slice text)
{
    struct arena *arena = arena_new();
    struct error err = {0};
    struct history_page page;
    /* All that it says has been received, and it has ended. */
    struct git git = {.in = -1, .out = -1, .pidfd = -1, .messages = -1, .ended = true};
    buf_init(&git.pending, 1);
    buf_init(&git.received, 1 << 20);
    buf_add(&git.received, text.data, text.len);
    if (!git.received.failed && history_log_read(&git, LIMIT, arena, &page, &err) == 0) {
        require(page.count <= LIMIT);
        for (size_t i = 0; i < page.count; i++) {
            const struct history_commit *commit = &page.commits[i];
            require(strlen(commit->commit) <= GIT_NAME_LEN && commit->id != NULL);
            require(commit->file_count <= HISTORY_FILES_SHOWN);
            require(memchr(commit->message, '\n', strlen(commit->message)) == NULL);
        }
    }
    buf_release(&git.pending);
    buf_release(&git.received);
    arena_free(arena);
}

static void check_executions(struct slice text)
{
    char commit[GIT_NAME_SIZE], id[EXECUTION_ID_SIZE], name[64];
    int64_t time_ms;
    executions_find(text, "exec_7683de5a", commit, &time_ms);
    require(strlen(commit) <= GIT_NAME_LEN);
    size_t len = text.len < sizeof(name) - 1 ? text.len : sizeof(name) - 1;
    memcpy(name, text.data, len);
    name[len] = '\0';
    if (execution_normalize(name, id, NULL) == 0)
        require(strcmp(id, HISTORY_FIRST_ID) == 0 || strlen(id) == 13);
}

static void check_ignore(struct slice text)
{
    struct arena *arena = arena_new();
    struct slice patterns = history_ignore_read(text, arena);
    require(patterns.len == 0 || strv_valid(patterns));
    require(patterns.len < PATTERNS_BYTES_MAX);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct slice text = {(const char *)data, size};
    check_log(text);
    check_executions(text);
    check_ignore(text);
    return 0;
}
