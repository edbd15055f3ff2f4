/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The stream of fast-import. It begins with "feature done": an end of input without the word `done`
 * is then a failure, so that a stream whose writer was killed cannot become half a commit.
 */

#include "sandbox/history_import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

static int start(struct import *import, struct error *err)
{
    static const char *const argv[] = {"fast-import", "--quiet", "--done", "--date-format=raw",
                                       NULL};
    if (import->git.loop != NULL)
        return 0;
    if (git_start(import->program, import->repository_fd, argv, &import->git, err) < 0)
        return -1;
    git_allow(&import->git, GIT_LONG_MS);
    if (import->pack_max > 0)
        git_limit_files(&import->git, import->pack_max);
    return git_puts(&import->git, "feature done\n", err);
}

__attribute__((format(printf, 3, 4))) static int say(struct import *import, struct error *err,
                                                     const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof(text))
        return error_set(err, ERROR_INTERNAL, "a line for git that is too long");
    return git_put(&import->git, text, (size_t)len, err);
}

/* ---- contents ---- */

int import_blob_begin(struct import *import, uint64_t size, struct error *err)
{
    if (start(import, err) < 0)
        return -1;
    return say(import, err, "blob\ndata %llu\n", (unsigned long long)size);
}

int import_blob_data(struct import *import, struct slice data, struct error *err)
{
    return git_put(&import->git, data.data, data.len, err);
}

int import_blob_end(struct import *import, struct error *err)
{
    return say(import, err, "\n");
}

/* ---- commits ---- */

int import_commit_begin(struct import *import, const struct import_commit *commit,
                        struct error *err)
{
    size_t len = strlen(commit->message);
    if (start(import, err) < 0 ||
        say(import, err,
            "commit " HISTORY_BRANCH "\nmark :%u\ncommitter Cella <cella@localhost> %lld +0000\n"
            "data %zu\n",
            ++import->marks, (long long)(commit->time_ms / 1000), len) < 0 ||
        git_put(&import->git, commit->message, len, err) < 0 || say(import, err, "\n") < 0)
        return -1;
    if (commit->parent[0] == '\0')
        return 0;
    /* One that is in this stream, git finds by its mark alone: its pack is not finished. */
    if (strcmp(commit->parent, import->commit) == 0)
        return say(import, err, "from :%u\n", import->marks - 1);
    return say(import, err, "from %s\n", commit->parent);
}

/* Always in quotes, so that no name can be anything else. */
static int say_path(struct import *import, const char *path, struct error *err)
{
    _cleanup_buf_ struct buf quoted = BUF_INIT(4 * PATH_BYTES_MAX + 4);
    buf_addc(&quoted, '"');
    for (; *path != '\0'; path++) {
        unsigned char c = (unsigned char)*path;
        if (c == '"' || c == '\\')
            buf_addf(&quoted, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            buf_addf(&quoted, "\\%03o", c);
        else
            buf_addc(&quoted, *path);
    }
    buf_adds(&quoted, "\"\n");
    if (buf_check(&quoted, "a path", err) < 0)
        return -1;
    return git_put(&import->git, quoted.data, quoted.len, err);
}

int import_remove(struct import *import, const char *path, struct error *err)
{
    return say(import, err, "D ") < 0 ? -1 : say_path(import, path, err);
}

int import_put(struct import *import, const struct tracked *item, struct error *err)
{
    char name[GIT_NAME_SIZE];
    blob_name_text(item->blob, name);
    if (say(import, err, "M %s %s ", tracked_git_mode(item), name) < 0)
        return -1;
    return say_path(import, item->path, err);
}

int import_put_text(struct import *import, const char *git_mode, const char *path,
                    struct slice text, struct error *err)
{
    if (say(import, err, "M %s inline ", git_mode) < 0 || say_path(import, path, err) < 0 ||
        say(import, err, "data %zu\n", text.len) < 0 ||
        git_put(&import->git, text.data, text.len, err) < 0)
        return -1;
    return say(import, err, "\n");
}

int import_commit_end(struct import *import, struct error *err)
{
    struct slice line;
    if (say(import, err, "\nget-mark :%u\n", import->marks) < 0 || git_flush(&import->git, err) < 0)
        return -1;
    int got = git_until(&import->git, '\n', GIT_NAME_LEN + 1, &line, err);
    if (got < 0)
        return -1;
    char name[GIT_NAME_SIZE] = "";
    if (got > 0 && line.len == GIT_NAME_LEN)
        memcpy(name, line.data, GIT_NAME_LEN);
    if (!git_name_valid(name)) {
        struct error why = {0};
        /* It has gone, and says why on its way out. */
        if (git_finish(&import->git, &why) == 0)
            error_set(&why, ERROR_INTERNAL, "git: no name for a commit");
        *err = why;
        return -1;
    }
    memcpy(import->commit, name, GIT_NAME_SIZE);
    return 0;
}

int import_end(struct import *import, struct error *err)
{
    if (import->git.loop == NULL)
        return 0;
    if (git_puts(&import->git, "done\n", err) < 0)
        return -1;
    return git_finish(&import->git, err);
}

void import_cancel(struct import *import)
{
    git_end(&import->git);
}
