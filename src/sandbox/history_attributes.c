/* SPDX-License-Identifier: Apache-2.0 */

/* The text of what git does not know of files, and paths in texts. */

#include "sandbox/history_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/file_tree.h"

enum { DEPTH_MAX = HISTORY_DEPTH_MAX + 64 };

/* The directories that the items at hand lie in: since these are sorted, a stack. */
struct parents {
    const struct tracked *items[DEPTH_MAX];
    size_t depth;
};

static const struct tracked *parent_of(struct parents *p, const struct tracked *item)
{
    while (p->depth > 0) {
        const struct tracked *top = p->items[p->depth - 1];
        size_t len = strlen(top->path);
        if (strncmp(item->path, top->path, len) == 0 && item->path[len] == '/')
            break;
        p->depth--;
    }
    const struct tracked *parent = p->depth == 0 ? NULL : p->items[p->depth - 1];
    if (item->type == FILE_DIRECTORY && p->depth < DEPTH_MAX)
        p->items[p->depth++] = item;
    return parent;
}

/* What one would guess. */
static struct tracked guess(const struct tracked *item, const struct tracked *parent)
{
    struct tracked as = *item;
    as.uid = parent == NULL ? 0 : parent->uid;
    as.gid = parent == NULL ? 0 : parent->gid;
    as.mode = item->type == FILE_REGULAR && !(item->mode & 0100) ? 0644 : 0755;
    return as;
}

static bool is_empty(const struct manifest *m, size_t i)
{
    size_t len = strlen(m->items[i].path);
    return i + 1 == m->count || strncmp(m->items[i + 1].path, m->items[i].path, len) != 0 ||
           m->items[i + 1].path[len] != '/';
}

void attributes_write(const struct manifest *m, struct buf *out)
{
    static const char letters[] = {
        [FILE_REGULAR] = 'f', [FILE_DIRECTORY] = 'd', [FILE_SYMLINK] = 'l'};
    struct parents parents = {.depth = 0};
    for (size_t i = 0; i < m->count; i++) {
        const struct tracked *item = &m->items[i];
        const struct tracked *parent = parent_of(&parents, item);
        const struct tracked expected = guess(item, parent);
        if (parent != NULL && tracked_same_attributes(item, &expected) &&
            !(item->type == FILE_DIRECTORY && is_empty(m, i)))
            continue;
        buf_addf(out, "%c %04o %u %u ", letters[item->type],
                 item->type == FILE_SYMLINK ? 0777 : item->mode, item->uid, item->gid);
        path_escape(item->path, out);
        buf_addc(out, '\n');
    }
    for (size_t i = 0; i < m->large_count; i++) {
        buf_adds(out, "x 0000 0 0 ");
        path_escape(m->large[i], out);
        buf_addc(out, '\n');
    }
}

/* ---- reading it back ---- */

static bool read_number(const char **at, const char *end, int base, uint32_t *ret)
{
    uint64_t value = 0;
    const char *start = *at;
    for (; *at < end && **at >= '0' && **at < '0' + base && value <= UINT32_MAX; (*at)++)
        value = value * (uint64_t)base + (uint64_t)(**at - '0');
    if (*at == start || value > UINT32_MAX || *at == end || **at != ' ')
        return false;
    (*at)++;
    *ret = (uint32_t)value;
    return true;
}

static bool read_line(struct slice line, struct arena *arena, struct tracked *ret)
{
    const char *at = line.data + 2, *end = line.data + line.len;
    if (line.len < 10 || line.data[1] != ' ')
        return false;
    ret->type = line.data[0] == 'd' ? FILE_DIRECTORY : line.data[0] == 'l' ? FILE_SYMLINK : 0;
    if (!read_number(&at, end, 8, &ret->mode) || ret->mode > 07777 ||
        !read_number(&at, end, 10, &ret->uid) || !read_number(&at, end, 10, &ret->gid))
        return false;
    ret->path = path_unescape((struct slice){at, (size_t)(end - at)}, arena);
    return ret->path != NULL;
}

/* Directories on the way to each item, as far as the one before it has not got them too. */
static int add_way(struct manifest *m, const char *path, const char *before, struct error *err)
{
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        if (before != NULL && strncmp(before, path, len + 1) == 0)
            continue;
        const struct tracked dir = {
            .path = arena_dup(m->arena, path, len), .type = FILE_DIRECTORY, .mode = UINT32_MAX};
        if (history_manifest_add(m, &dir, err) < 0)
            return -1;
    }
    return 0;
}

static int add_directories(struct manifest *m, const struct manifest *lines, struct error *err)
{
    size_t count = m->count;
    for (size_t i = 0; i < count; i++)
        if (add_way(m, m->items[i].path, i == 0 ? NULL : m->items[i - 1].path, err) < 0)
            return -1;
    for (size_t i = 0; i < lines->count; i++) {
        struct tracked dir = lines->items[i];
        dir.mode = UINT32_MAX;
        if (dir.type == FILE_DIRECTORY && history_manifest_add(m, &dir, err) < 0)
            return -1;
    }
    history_manifest_sort(m);
    return 0;
}

/* Above the roots there are directories that are nobody's to track: each root has a line. */
static void drop_above_roots(struct manifest *m, const struct manifest *lines)
{
    struct parents parents = {.depth = 0};
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++) {
        m->items[n] = m->items[i];
        const struct tracked *item = &m->items[n];
        bool inside = parent_of(&parents, item) != NULL;
        if (inside || item->type != FILE_DIRECTORY ||
            history_manifest_find(lines, item->path) != NULL)
            n++;
        else
            parents.depth--;
    }
    m->count = n;
}

int attributes_apply(struct manifest *m, struct slice text, struct error *err)
{
    _cleanup_manifest_ struct manifest lines;
    history_manifest_init(&lines);
    for (const char *at = text.data, *end = text.data + text.len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct tracked item = {0};
        if (stop == NULL)
            break;
        bool made = read_line((struct slice){at, (size_t)(stop - at)}, lines.arena, &item);
        if (made && at[0] == 'x')
            history_manifest_add_large(m, item.path, NULL);
        else if (made)
            history_manifest_add(&lines, &item, NULL);
        at = stop + 1;
    }
    history_manifest_sort(&lines);
    if (add_directories(m, &lines, err) < 0)
        return -1;
    drop_above_roots(m, &lines);
    struct parents parents = {.depth = 0};
    for (size_t i = 0; i < m->count; i++) {
        struct tracked *item = &m->items[i];
        const struct tracked expected = guess(item, parent_of(&parents, item));
        const struct tracked *told = history_manifest_find(&lines, item->path);
        const struct tracked *from = told != NULL && told->type == item->type ? told : &expected;
        item->mode = from->mode, item->uid = from->uid, item->gid = from->gid;
    }
    return 0;
}

/* ---- paths ---- */

void path_escape(const char *path, struct buf *out)
{
    for (; *path != '\0'; path++) {
        unsigned char c = (unsigned char)*path;
        if (c < 0x20 || c == 0x7f || c == '%')
            buf_addf(out, "%%%02X", c);
        else
            buf_addc(out, *path);
    }
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

const char *path_unescape(struct slice text, struct arena *arena)
{
    if (text.len == 0 || text.len > (size_t)3 * PATH_BYTES_MAX || memchr(text.data, 0, text.len))
        return NULL;
    char *out = arena_alloc(arena, text.len + 1), *to = out;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] != '%') {
            *to++ = text.data[i];
            continue;
        }
        int high = i + 2 < text.len ? hex_digit(text.data[i + 1]) : -1;
        int low = high < 0 ? -1 : hex_digit(text.data[i + 2]);
        if (low < 0 || high + low == 0)
            return NULL;
        *to++ = (char)(high << 4 | low);
        i += 2;
    }
    *to = '\0';
    return out;
}

struct slice path_shown(struct slice tree_path, struct arena *arena)
{
    static const char main_root[] = "workspace/";
    size_t len = sizeof(main_root) - 1;
    if (tree_path.len > len && memcmp(tree_path.data, main_root, len) == 0)
        return (struct slice){arena_dup(arena, tree_path.data + len, tree_path.len - len),
                              tree_path.len - len};
    char *out = arena_alloc(arena, tree_path.len + 2);
    out[0] = '/';
    memcpy(out + 1, tree_path.data, tree_path.len);
    return (struct slice){out, tree_path.len + 1};
}
