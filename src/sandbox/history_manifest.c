/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sorted arrays: two of ten thousand items are compared in less time than it takes to ask for
 * one. The file has a check at its end: one that was written halfway is no manifest, and costs a
 * comparison by content.
 */

#include "sandbox/history_manifest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/globs.h"
#include "base/limits.h"
#include "sandbox/file_tree.h"

void history_manifest_init(struct manifest *m)
{
    *m = (struct manifest){.arena = arena_new()};
}

void history_manifest_release(struct manifest *m)
{
    if (m->arena != NULL)
        arena_free(m->arena);
    free(m->items);
    free(m->large);
    *m = (struct manifest){0};
}

/* git has a use of its own for ".git", however it is written, and none for empty names and dots. */
static int check_path(const char *path, struct error *err)
{
    for (const char *part = path;; part++) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') || (len == 2 && memcmp(part, "..", 2) == 0) ||
            (len == 4 && strncasecmp(part, ".git", 4) == 0))
            return error_set(err, ERROR_INVALID_PATH, "\"%.80s\" cannot be in a history", path);
        part += len;
        if (*part == '\0')
            return 0;
    }
}

int history_manifest_add(struct manifest *m, const struct tracked *item, struct error *err)
{
    if (check_path(item->path, err) < 0)
        return -1;
    if (m->count == m->cap) {
        size_t cap = m->cap == 0 ? 64 : 2 * m->cap;
        struct tracked *items = reallocarray(m->items, cap, sizeof(*items));
        if (items == NULL)
            return error_sys(err, "keeping a list of files");
        m->items = items;
        m->cap = cap;
    }
    m->items[m->count] = *item;
    m->items[m->count++].path = arena_strdup(m->arena, item->path);
    return 0;
}

int history_manifest_add_large(struct manifest *m, const char *path, struct error *err)
{
    if (check_path(path, err) < 0)
        return -1;
    if (m->large_count == m->large_cap) {
        size_t cap = m->large_cap == 0 ? 16 : 2 * m->large_cap;
        const char **large = reallocarray(m->large, cap, sizeof(*large));
        if (large == NULL)
            return error_sys(err, "keeping a list of files");
        m->large = large;
        m->large_cap = cap;
    }
    m->large[m->large_count++] = arena_strdup(m->arena, path);
    return 0;
}

static int by_path(const void *a, const void *b)
{
    const struct tracked *x = a, *y = b;
    return file_tree_compare(x->path, y->path);
}

static bool is_below(const char *path, const char *other)
{
    size_t len = strlen(other);
    return strncmp(path, other, len) == 0 && path[len] == '/';
}

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return file_tree_compare(*x, *y);
}

static void sort_large(struct manifest *m)
{
    if (m->large_count == 0)
        return;
    qsort(m->large, m->large_count, sizeof(m->large[0]), by_name);
    size_t n = 1;
    for (size_t i = 1; i < m->large_count; i++)
        if (strcmp(m->large[i], m->large[n - 1]) != 0)
            m->large[n++] = m->large[i];
    m->large_count = n;
}

bool history_manifest_has_large(const struct manifest *m, const char *path)
{
    return m->large_count > 0 &&
           bsearch(&path, m->large, m->large_count, sizeof(path), by_name) != NULL;
}

void history_manifest_sort(struct manifest *m)
{
    sort_large(m);
    if (m->count == 0)
        return;
    qsort(m->items, m->count, sizeof(m->items[0]), by_path);
    size_t n = 1;
    for (size_t i = 1; i < m->count; i++) {
        struct tracked *last = &m->items[n - 1];
        if (strcmp(m->items[i].path, last->path) == 0)
            *last = m->items[i];
        else if (last->type == FILE_DIRECTORY || !is_below(m->items[i].path, last->path))
            m->items[n++] = m->items[i];
    }
    m->count = n;
}

struct tracked *history_manifest_find(const struct manifest *m, const char *path)
{
    const struct tracked key = {.path = path};
    return m->count == 0 ? NULL : bsearch(&key, m->items, m->count, sizeof(key), by_path);
}

/* ---- rules ---- */

static const char *const roots[] = {"workspace/", "home/user/"};

/* From the root that it is in; NULL: it is none of what is in one. */
static const char *below_root(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(roots); i++)
        if (strncmp(path, roots[i], strlen(roots[i])) == 0)
            return path + strlen(roots[i]);
    return NULL;
}

/* A directory stands right before what is in it: so it is enough to look at each by itself. */
bool history_manifest_mark(struct manifest *m, struct slice ignore)
{
    const char *covered = NULL;
    uint64_t steps = 0, plain, globs;
    globs_weigh(ignore, &plain, &globs);
    for (size_t i = 0; i < m->count; i++) {
        struct tracked *item = &m->items[i];
        const char *path = below_root(item->path);
        if (path == NULL)
            continue;
        if (covered == NULL || !is_below(item->path, covered)) {
            const char *slash = strrchr(path, '/');
            steps += plain + globs * (strlen(path) + 1);
            if (steps > HISTORY_MATCH_MAX)
                return false;
            if (!globs_match(ignore, path, slash != NULL ? slash + 1 : path))
                continue;
            covered = item->path;
        }
        item->ignored = true;
    }
    return true;
}

void history_manifest_mark_large(struct manifest *m, const struct manifest *of)
{
    const char *covered = NULL;
    for (size_t i = 0; of->large_count > 0 && i < m->count; i++) {
        struct tracked *item = &m->items[i];
        if (history_manifest_has_large(of, item->path))
            covered = item->path;
        else if (covered == NULL || !is_below(item->path, covered))
            continue;
        item->ignored = true;
    }
}

/* ---- comparing ---- */

bool tracked_same_stat(const struct tracked *a, const struct tracked *b)
{
    return a->type == b->type && a->size == b->size && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns && a->ctime_ns != 0 && a->inode == b->inode;
}

const char *tracked_git_mode(const struct tracked *item)
{
    if (item->type == FILE_DIRECTORY)
        return NULL;
    return item->type == FILE_SYMLINK ? "120000" : item->mode & 0100 ? "100755" : "100644";
}

bool tracked_same_tree(const struct tracked *a, const struct tracked *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == FILE_DIRECTORY)
        return true;
    return strcmp(tracked_git_mode(a), tracked_git_mode(b)) == 0 && a->has_blob && b->has_blob &&
           memcmp(a->blob, b->blob, SHA1_SIZE) == 0;
}

bool tracked_same_attributes(const struct tracked *a, const struct tracked *b)
{
    return a->uid == b->uid && a->gid == b->gid && (a->type == FILE_SYMLINK || a->mode == b->mode);
}

/* ---- names of objects ---- */

void blob_name_begin(struct sha1 *sha1, uint64_t size)
{
    char head[32];
    int len = snprintf(head, sizeof(head), "blob %llu", (unsigned long long)size);
    sha1_init(sha1);
    sha1_add(sha1, head, (size_t)len + 1);
}

void blob_name(const void *data, size_t len, unsigned char ret_blob[SHA1_SIZE])
{
    struct sha1 sha1;
    blob_name_begin(&sha1, len);
    sha1_add(&sha1, data, len);
    sha1_end(&sha1, ret_blob);
}

void blob_name_text(const unsigned char blob[SHA1_SIZE], char out[GIT_NAME_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA1_SIZE; i++) {
        out[2 * i] = digits[blob[i] >> 4];
        out[2 * i + 1] = digits[blob[i] & 15];
    }
    out[GIT_NAME_LEN] = '\0';
}

bool git_name_valid(const char *text)
{
    return strlen(text) == GIT_NAME_LEN && strspn(text, "0123456789abcdef") == GIT_NAME_LEN;
}

int blob_name_parse(const char *text, unsigned char ret_blob[SHA1_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    if (strspn(text, digits) < GIT_NAME_LEN)
        return -1;
    for (size_t i = 0; i < SHA1_SIZE; i++)
        ret_blob[i] = (unsigned char)((strchr(digits, text[2 * i]) - digits) << 4 |
                                      (strchr(digits, text[2 * i + 1]) - digits));
    return 0;
}

/* ---- on disk ---- */

static const char magic[16] = "cella manifest3";

struct file_head {
    char magic[16];
    char commit[GIT_NAME_SIZE + 7];
    uint64_t count, large;
    uint64_t rules, committed;
};

struct file_item {
    uint64_t size, mtime_ns, ctime_ns, inode;
    uint32_t type, mode, uid, gid;
    unsigned char blob[SHA1_SIZE];
    uint32_t has_blob;
    uint32_t path_len;
};

static uint64_t check_of(const char *data, size_t len)
{
    uint64_t check = 0xcbf29ce484222325;
    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint64_t word;
        memcpy(&word, data + i, 8);
        check = (check ^ word) * 0x100000001b3;
        check ^= check >> 29;
    }
    for (size_t i = len & ~(size_t)7; i < len; i++)
        check = (check ^ (unsigned char)data[i]) * 0x100000001b3;
    return check;
}

void history_manifest_seal(struct buf *out, size_t start)
{
    uint64_t check = out->failed ? 0 : check_of(out->data + start, out->len - start);
    buf_add(out, &check, sizeof(check));
}

void history_manifest_encode(const struct manifest *m, struct buf *out)
{
    struct file_head head = {
        .count = m->count, .large = m->large_count, .rules = m->rules, .committed = m->committed};
    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.commit, m->commit, sizeof(m->commit));
    size_t start = out->len;
    buf_add(out, &head, sizeof(head));
    for (size_t i = 0; i < m->count; i++) {
        const struct tracked *t = &m->items[i];
        struct file_item item;
        memset(&item, 0, sizeof(item));
        item.size = t->size, item.mtime_ns = t->mtime_ns, item.ctime_ns = t->ctime_ns;
        item.inode = t->inode, item.type = t->type, item.mode = t->mode;
        item.uid = t->uid, item.gid = t->gid, item.has_blob = t->has_blob;
        item.path_len = (uint32_t)strlen(t->path);
        memcpy(item.blob, t->blob, SHA1_SIZE);
        buf_add(out, &item, sizeof(item));
        buf_add(out, t->path, item.path_len + 1);
    }
    for (size_t i = 0; i < m->large_count; i++)
        buf_add(out, m->large[i], strlen(m->large[i]) + 1);
    history_manifest_seal(out, start);
}

static int torn(struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "the list of files is torn");
}

static int decode_items(struct slice *rest, uint64_t count, struct manifest *m, struct error *err)
{
    struct slice data = *rest;
    for (; count > 0; count--) {
        struct file_item item;
        if (data.len < sizeof(item))
            return torn(err);
        memcpy(&item, data.data, sizeof(item));
        data.data += sizeof(item), data.len -= sizeof(item);
        if (item.path_len >= data.len || item.path_len > PATH_BYTES_MAX ||
            item.type > FILE_SYMLINK || strnlen(data.data, item.path_len + 1) != item.path_len)
            return torn(err);
        struct tracked t = {.path = data.data,
                            .type = item.type,
                            .mode = item.mode,
                            .uid = item.uid,
                            .gid = item.gid,
                            .size = item.size,
                            .mtime_ns = item.mtime_ns,
                            .ctime_ns = item.ctime_ns,
                            .inode = item.inode,
                            .has_blob = item.has_blob != 0};
        memcpy(t.blob, item.blob, SHA1_SIZE);
        if (history_manifest_add(m, &t, err) < 0)
            return -1;
        data.data += item.path_len + 1, data.len -= item.path_len + 1;
    }
    *rest = data;
    return 0;
}

static int decode_large(struct slice data, uint64_t count, struct manifest *m, struct error *err)
{
    for (; count > 0; count--) {
        size_t len = strnlen(data.data, data.len);
        if (len == data.len || len > PATH_BYTES_MAX)
            return torn(err);
        if (history_manifest_add_large(m, data.data, err) < 0)
            return -1;
        data.data += len + 1, data.len -= len + 1;
    }
    return data.len == 0 ? 0 : torn(err);
}

int history_manifest_decode(struct slice data, struct manifest *ret_manifest, struct error *err)
{
    struct file_head head;
    uint64_t check;
    if (data.len < sizeof(head) + sizeof(check))
        return torn(err);
    data.len -= sizeof(check);
    memcpy(&check, data.data + data.len, sizeof(check));
    memcpy(&head, data.data, sizeof(head));
    head.commit[GIT_NAME_LEN] = '\0';
    if (memcmp(head.magic, magic, sizeof(magic)) != 0 || check != check_of(data.data, data.len) ||
        (head.commit[0] != '\0' && !git_name_valid(head.commit)))
        return torn(err);
    data.data += sizeof(head), data.len -= sizeof(head);
    if (decode_items(&data, head.count, ret_manifest, err) < 0 ||
        decode_large(data, head.large, ret_manifest, err) < 0)
        return -1;
    history_manifest_sort(ret_manifest);
    memcpy(ret_manifest->commit, head.commit, GIT_NAME_SIZE);
    ret_manifest->rules = head.rules;
    ret_manifest->committed = head.committed;
    return 0;
}
