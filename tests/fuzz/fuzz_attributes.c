/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a commit says of modes, owners and empty directories, over files whose names come from the
 * same input (a line each, up to the first empty one): no crash, an order that holds, modes that
 * are ones, and a text that, written and read again, says the same.
 */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/file_tree.h"
#include "sandbox/history_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

/* The rest of the text behind the names. */
static struct slice read_names(struct slice text, struct manifest *m)
{
    struct error err;
    const char *at = text.data, *end = text.data + text.len, *stop;
    while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL && stop > at) {
        size_t len = (size_t)(stop - at);
        bool link = at[0] == 'l';
        if (len > 1 && len <= PATH_BYTES_MAX && memchr(at, 0, len) == NULL) {
            struct tracked item = {.path = arena_dup(m->arena, at + 1, len - 1),
                                   .type = link ? FILE_SYMLINK : FILE_REGULAR,
                                   .mode = link ? 0777 : 0644,
                                   .has_blob = true};
            history_manifest_add(m, &item, &err);
        }
        at = stop + 1;
    }
    history_manifest_sort(m);
    return (struct slice){at, (size_t)(end - at)};
}

static void check_items(const struct manifest *m)
{
    for (size_t i = 0; i < m->count; i++) {
        require(m->items[i].mode <= 07777 && m->items[i].type <= FILE_SYMLINK);
        require(i == 0 || file_tree_compare(m->items[i - 1].path, m->items[i].path) < 0);
    }
}

static void check_path(struct slice text)
{
    struct arena *arena = arena_new();
    _cleanup_buf_ struct buf escaped = BUF_INIT(1 << 20);
    const char *path = path_unescape(text, arena);
    if (path != NULL) {
        path_escape(path, &escaped);
        const char *again = path_unescape((struct slice){escaped.data, escaped.len}, arena);
        require(memchr(escaped.data, '\n', escaped.len) == NULL);
        require(escaped.len > (size_t)3 * PATH_BYTES_MAX ||
                (again != NULL && strcmp(again, path) == 0));
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_manifest_ struct manifest m, again;
    _cleanup_buf_ struct buf text = BUF_INIT(16 << 20);
    struct error err = {0};
    const struct slice all = {(const char *)data, size};
    history_manifest_init(&m);
    history_manifest_init(&again);
    check_path(all);
    if (attributes_apply(&m, read_names(all, &m), &err) < 0)
        return 0;
    check_items(&m);
    attributes_write(&m, &text);
    for (size_t i = 0; i < m.count; i++)
        if (m.items[i].type != FILE_DIRECTORY)
            require(history_manifest_add(&again, &m.items[i], &err) == 0);
    history_manifest_sort(&again);
    require(attributes_apply(&again, (struct slice){text.data, text.len}, &err) == 0);
    check_items(&again);
    require(again.count == m.count);
    for (size_t i = 0; i < m.count; i++)
        require(strcmp(m.items[i].path, again.items[i].path) == 0 &&
                tracked_same_attributes(&m.items[i], &again.items[i]));
    return 0;
}
