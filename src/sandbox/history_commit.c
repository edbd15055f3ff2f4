/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The comparison goes by what stat(2) says, as make and git do, so that only what may have changed
 * is read; whether it has, its hash tells, before git is even started. A file that was written in
 * the same tick in which it was listed could change again without looking different: those are
 * read again the next time.
 */

#include "sandbox/history_commit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/timetext.h"
#include "loop/co.h"
#include "sandbox/file_tree.h"
#include "sandbox/history_import.h"
#include "sandbox/history_rules.h"

enum {
    TICK_NS = 20 * 1000 * 1000, /* two of the slowest kernel's */
    HELD_MAX = 1 << 20,         /* larger files go to git as they come */
    ATTRIBUTES_MAX = 64 << 20,
    ATTRIBUTE_LINES = 200, /* in a commit's message … */
    MESSAGE_MAX = 1 << 20, /* … of which they may take half */
    TURN_BYTES = 1 << 20,  /* that are worked on before others have their turn */
    ENTRY_BYTES = 256,     /* that an entry of a list counts for */
};

static const char readme[] = "# Sandbox\n\nThe history of this sandbox's files, a commit for each "
                             "execution that changed some.\n";
static const char first_message[] = "Initial commit\n";

struct work {
    struct repository *r;
    const struct history_source *source;
    const struct history_commit_request *request;
    struct manifest *now, *before;
    struct slice ignore;
    bool new_rules;    /* the newest commit has others */
    bool other_before; /* what was before was not listed by these */
    struct import import;
    uint64_t started_ns, total, read_bytes;
    size_t busy_bytes; /* since others had their turn */
    /* of the file that is being read */
    struct tracked *item;
    const struct tracked *was;
    struct sha1 sha1;
    uint64_t left;
    struct buf held;
    bool passing; /* it goes to git as it comes */
};

/* ---- listing ---- */

static struct tracked tracked_of(const struct history_entry *entry)
{
    return (struct tracked){.path = entry->path + 1,
                            .type = (uint32_t)entry->type,
                            .mode = (uint32_t)entry->mode,
                            .uid = (uint32_t)entry->uid,
                            .gid = (uint32_t)entry->gid,
                            .size = entry->size,
                            .mtime_ns = entry->mtime_ns,
                            .ctime_ns = entry->ctime_ns,
                            .inode = entry->inode,
                            .seen_ns = entry->ctime_ns};
}

/* A sandbox that has its bytes at hand would keep everybody else waiting. */
static int take_turns(struct work *w, size_t bytes, struct error *err)
{
    w->busy_bytes += bytes;
    if (w->busy_bytes < TURN_BYTES)
        return 0;
    w->busy_bytes = 0;
    return co_sleep(w->r->git->loop, 0, err);
}

static int too_much(const struct work *w, struct error *err)
{
    return error_set(err, ERROR_LIMIT_EXCEEDED,
                     "the tracked files are more than %llu MiB together, too much for a history",
                     (unsigned long long)(w->request->total_max >> 20));
}

/* It is there, and is not kept: what was kept of it last stays. False: nothing was. */
static bool keep_outgrown(struct work *w, const char *path, struct tracked *ret_kept)
{
    const struct tracked *was = history_manifest_find(w->before, path);
    if (was == NULL || was->type != FILE_REGULAR || !was->has_blob)
        return false;
    *ret_kept = *was;
    ret_kept->outgrown = true;
    ret_kept->ctime_ns = 0;
    return true;
}

/* Commits name it, so that going back to one takes neither that for what was there, nor the file
 * for one that was not. */
static int take_outgrown(struct work *w, const struct tracked *item, struct error *err)
{
    struct error ignored;
    struct tracked kept;
    if (history_manifest_add_large(w->now, item->path, &ignored) == 0 && item->first &&
        w->r->head[0] == '\0')
        history_manifest_add_large(w->before, item->path, &ignored);
    if (keep_outgrown(w, item->path, &kept))
        history_manifest_add(w->now, &kept, &ignored);
    return take_turns(w, ENTRY_BYTES, err);
}

/* git takes no link for where its submodules are written down, nor one below that. */
static bool is_refused(const struct tracked *item)
{
    static const char name[] = ".gitmodules";
    if (item->type != FILE_SYMLINK)
        return false;
    for (const char *part = item->path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncasecmp(part, name, sizeof(name) - 1) == 0 &&
            (part[sizeof(name) - 1] == '\0' || part[sizeof(name) - 1] == '/'))
            return true;
    }
    return false;
}

static int take_entry(void *ctx, const struct history_entry *entry, struct error *err)
{
    struct work *w = ctx;
    struct tracked item = tracked_of(entry);
    struct error ignored;
    item.first = item.ctime_ns < w->request->created_ns;
    if (is_refused(&item))
        return take_turns(w, ENTRY_BYTES, err);
    if (item.type == FILE_REGULAR && item.size > w->request->file_max)
        return take_outgrown(w, &item, err);
    w->total += item.type == FILE_REGULAR ? item.size : 0;
    if (w->total > w->request->total_max)
        return too_much(w, err);
    if (item.type == FILE_SYMLINK) {
        item.target = arena_strdup(w->now->arena, entry->target);
        blob_name(item.target, strlen(item.target), item.blob);
        item.has_blob = true;
    }
    /* A path that git could not have is left out, whatever made it. */
    history_manifest_add(w->now, &item, &ignored);
    return take_turns(w, ENTRY_BYTES, err);
}

/* Calls each() for every path of the two, in order; one of the items may be NULL. */
typedef int pair_visit(struct work *w, const struct tracked *was, struct tracked *is,
                       struct error *err);
static int each_pair(struct work *w, pair_visit *each, struct error *err)
{
    const struct manifest *a = w->before, *b = w->now;
    for (size_t i = 0, j = 0; i < a->count || j < b->count;) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : file_tree_compare(a->items[i].path, b->items[j].path);
        if (each(w, order <= 0 ? &a->items[i] : NULL, order >= 0 ? &b->items[j] : NULL, err) < 0 ||
            take_turns(w, ENTRY_BYTES, err) < 0)
            return -1;
        i += order <= 0;
        j += order >= 0;
    }
    return 0;
}

static int keep_blob(struct work *w, const struct tracked *was, struct tracked *is,
                     struct error *err)
{
    if (was != NULL && is != NULL && !is->has_blob && was->has_blob && tracked_same_stat(was, is)) {
        memcpy(is->blob, was->blob, SHA1_SIZE);
        is->has_blob = true;
    }
    return 0;
}

/* ---- reading ---- */

/* It went, became something else, or too large, since it was listed; or it cannot be read, which is
 * no reason to take it for gone. */
static void skip_content(struct work *w, const struct history_entry *entry)
{
    struct error ignored;
    struct tracked kept;
    const char *path = w->item->path;
    bool unread = entry->flags & HISTORY_UNREAD;
    bool large = !(entry->flags & HISTORY_GONE) && !unread && entry->type == FILE_REGULAR &&
                 entry->size > w->request->file_max;
    if (large)
        history_manifest_add_large(w->now, path, &ignored);
    if ((large || unread) && keep_outgrown(w, path, &kept)) {
        *w->item = kept;
        w->item->path = path;
        return;
    }
    w->item->has_blob = true; /* it is out of the way; the next listing says what became of it */
    w->item->size = UINT64_MAX;
}

static int content_begin(void *ctx, const struct history_entry *entry, struct error *err)
{
    struct work *w = ctx;
    w->item = entry->path[0] == '/' ? history_manifest_find(w->now, entry->path + 1) : NULL;
    if (w->item == NULL || w->item->has_blob || w->item->type != FILE_REGULAR)
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox sent a file that nobody asked for");
    if (entry->flags & (HISTORY_GONE | HISTORY_NO_CONTENT)) {
        skip_content(w, entry);
        return 0;
    }
    /* What was listed may have been less. */
    w->read_bytes += entry->size;
    if (w->read_bytes > w->request->total_max)
        return too_much(w, err);
    const char *path = w->item->path;
    bool first = w->item->first && entry->ctime_ns < w->request->created_ns;
    *w->item = tracked_of(entry);
    w->item->path = path;
    w->item->first = first;
    w->was = history_manifest_find(w->before, path);
    w->left = entry->size;
    blob_name_begin(&w->sha1, entry->size);
    buf_clear(&w->held);
    w->passing = entry->size > HELD_MAX;
    return w->passing ? import_blob_begin(&w->import, entry->size, err) : 0;
}

static int content_data(void *ctx, struct slice data, struct error *err)
{
    struct work *w = ctx;
    if (data.len > w->left)
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox sent more of a file than there is");
    w->left -= data.len;
    sha1_add(&w->sha1, data.data, data.len);
    if (!w->passing)
        buf_add(&w->held, data.data, data.len);
    if (w->passing ? import_blob_data(&w->import, data, err) < 0
                   : buf_check(&w->held, "a file", err) < 0)
        return -1;
    return take_turns(w, data.len, err);
}

static int content_end(void *ctx, bool torn, struct error *err)
{
    struct work *w = ctx;
    if (w->left > 0)
        return error_set(err, ERROR_UNAVAILABLE, "the sandbox sent less of a file than there is");
    sha1_end(&w->sha1, w->item->blob);
    w->item->has_blob = true;
    if (torn) {
        w->item->ctime_ns = 0;
        w->item->seen_ns = TRACKED_TORN;
    }
    if (w->passing)
        return import_blob_end(&w->import, err);
    if (w->was != NULL && w->was->has_blob && memcmp(w->was->blob, w->item->blob, SHA1_SIZE) == 0)
        return 0;
    if (import_blob_begin(&w->import, w->held.len, err) < 0 ||
        import_blob_data(&w->import, (struct slice){w->held.data, w->held.len}, err) < 0)
        return -1;
    return import_blob_end(&w->import, err);
}

/* Files that nothing is known of any more: they went, or became something else, meanwhile. */
static void drop_gone(struct manifest *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].size != UINT64_MAX)
            m->items[n++] = m->items[i];
    m->count = n;
}

static void sort_on_worker(void *arg)
{
    history_manifest_sort(arg);
}

static int read_changed(struct work *w, struct arena *arena, struct error *err)
{
    static const struct history_sink sink = {content_begin, content_data, content_end};
    const char **paths = calloc(w->now->count + 1, sizeof(*paths));
    size_t count = 0, large = w->now->large_count;
    if (paths == NULL)
        return error_sys(err, "reading what has changed");
    for (size_t i = 0; i < w->now->count; i++)
        if (w->now->items[i].type == FILE_REGULAR && !w->now->items[i].has_blob)
            paths[count++] = arena_printf(arena, "/%s", w->now->items[i].path);
    int rc = count == 0 ? 0
                        : w->source->read(w->source->ctx, paths, count, w->request->file_max, &sink,
                                          w, err);
    free(paths);
    /* What was not sent at all is not known either. */
    for (size_t i = 0; i < w->now->count; i++)
        if (w->now->items[i].type == FILE_REGULAR && !w->now->items[i].has_blob)
            w->now->items[i].size = UINT64_MAX;
    drop_gone(w->now);
    if (w->now->large_count != large)
        workers_run(w->r->git->workers, sort_on_worker, w->now);
    return rc;
}

/* ---- committing ---- */

/* It was not listed, and that says nothing. */
static bool is_left_out(const struct tracked *was, const struct tracked *is)
{
    return is == NULL && was->ignored;
}

static int remove_pair(struct work *w, const struct tracked *was, struct tracked *is,
                       struct error *err)
{
    bool goes = was != NULL && was->type != FILE_DIRECTORY && !is_left_out(was, is) &&
                (is == NULL || is->type == FILE_DIRECTORY);
    return goes ? import_remove(&w->import, was->path, err) : 0;
}

static int put_item(struct work *w, const struct tracked *item, struct error *err)
{
    if (item->type == FILE_SYMLINK && item->target != NULL)
        return import_put_text(&w->import, "120000", item->path, slice_of(item->target), err);
    return import_put(&w->import, item, err);
}

static int put_pair(struct work *w, const struct tracked *was, struct tracked *is,
                    struct error *err)
{
    bool differs =
        is != NULL && is->type != FILE_DIRECTORY && (was == NULL || !tracked_same_tree(was, is));
    return differs ? put_item(w, is, err) : 0;
}

struct writing {
    const struct manifest *m;
    struct buf *text;
};

static void write_on_worker(void *arg)
{
    const struct writing *writing = arg;
    attributes_write(writing->m, writing->text);
}

static int put_attributes(struct work *w, const struct manifest *m, struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT(ATTRIBUTES_MAX);
    workers_run(w->r->git->workers, write_on_worker, &(struct writing){m, &text});
    if (buf_check(&text, "the list of attributes", err) < 0)
        return -1;
    return import_put_text(&w->import, "100644", ATTRIBUTES_PATH,
                           (struct slice){text.data, text.len}, err);
}

/* The usual ones are not written down. */
static int put_rules(struct work *w, struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT(PATTERNS_BYTES_MAX);
    if (!w->new_rules)
        return 0;
    if (slice_eq(w->ignore, history_rules_usual.ignore))
        return w->r->head[0] == '\0' ? 0 : import_remove(&w->import, IGNORE_PATH, err);
    history_ignore_write(w->ignore, &text);
    if (buf_check(&text, "the rules of a history", err) < 0)
        return -1;
    return import_put_text(&w->import, "100644", IGNORE_PATH, (struct slice){text.data, text.len},
                           err);
}

static int begin_first(struct work *w, struct error *err)
{
    const struct import_commit commit = {
        .parent = "", .message = first_message, .time_ms = time_now_ms()};
    if (import_commit_begin(&w->import, &commit, err) < 0)
        return -1;
    return import_put_text(&w->import, "100644", "README.md", slice_of(readme), err);
}

/* A directory is the image's when a file in it is. */
static void mark_first_directories(struct manifest *m)
{
    for (size_t i = 0; i < m->count; i++) {
        if (!m->items[i].first)
            continue;
        char path[PATH_BYTES_MAX + 1];
        snprintf(path, sizeof(path), "%s", m->items[i].path);
        for (char *slash = strrchr(path, '/'); slash != NULL; slash = strrchr(path, '/')) {
            *slash = '\0';
            struct tracked *dir = history_manifest_find(m, path);
            if (dir == NULL || dir->first)
                break;
            dir->first = true;
        }
    }
}

struct finding {
    struct work *w;
    struct error *err;
    int rc;
};

static void find_first_on_worker(void *arg)
{
    struct finding *f = arg;
    const struct manifest *now = f->w->now;
    mark_first_directories(f->w->now);
    for (size_t i = 0; i < now->count && f->rc == 0; i++) {
        const struct tracked *item = &now->items[i];
        bool is_root = item->type == FILE_DIRECTORY && (i == 0 || strchr(item->path, '/') == NULL);
        if (item->first || is_root)
            f->rc = history_manifest_add(f->w->before, item, f->err);
    }
    history_manifest_sort(f->w->before);
}

/* The first commit: what the image brought, which is then what was there before. */
static int commit_first(struct work *w, struct error *err)
{
    struct finding finding = {w, err, 0};
    workers_run(w->r->git->workers, find_first_on_worker, &finding);
    if (finding.rc < 0 || begin_first(w, err) < 0)
        return -1;
    for (size_t i = 0; i < w->before->count; i++)
        if ((w->before->items[i].type != FILE_DIRECTORY &&
             put_item(w, &w->before->items[i], err) < 0) ||
            take_turns(w, ENTRY_BYTES, err) < 0)
            return -1;
    if (put_rules(w, err) < 0 || put_attributes(w, w->before, err) < 0)
        return -1;
    return import_commit_end(&w->import, err);
}

/* ---- what has changed ---- */

struct changes {
    struct work *w;
    struct slice *files;
    size_t count;
    bool cut;
    size_t tree;         /* of them, those that git sees */
    size_t attributes;   /* … and those that it does not */
    struct buf *message; /* has a line for each of the latter, as far as there is room */
    struct arena *arena;
};

static void add_change(struct changes *c, const char *path, bool tree)
{
    c->tree += tree;
    c->attributes += !tree;
    if (c->count == HISTORY_FILES_SHOWN) {
        c->cut = true;
    } else {
        if (c->files == NULL)
            c->files = arena_alloc(c->arena, HISTORY_FILES_SHOWN * sizeof(*c->files));
        c->files[c->count++] = path_shown(slice_of(path), c->arena);
    }
    if (!tree && c->attributes <= ATTRIBUTE_LINES && c->message->len < MESSAGE_MAX / 2) {
        buf_adds(c->message, "Attributes: ");
        path_escape(path, c->message);
        buf_addc(c->message, '\n');
    }
}

static bool is_empty_at(const struct manifest *m, size_t i)
{
    size_t len = strlen(m->items[i].path);
    return i + 1 == m->count || strncmp(m->items[i + 1].path, m->items[i].path, len) != 0 ||
           m->items[i + 1].path[len] != '/';
}

static void find_changes_on_worker(void *arg)
{
    struct changes *c = arg;
    const struct manifest *a = c->w->before, *b = c->w->now;
    for (size_t i = 0, j = 0; i < a->count || j < b->count;) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : file_tree_compare(a->items[i].path, b->items[j].path);
        const struct tracked *was = order <= 0 ? &a->items[i] : NULL;
        const struct tracked *is = order >= 0 ? &b->items[j] : NULL;
        const struct tracked *any = is != NULL ? is : was;
        if (was == NULL || is == NULL) {
            if (was != NULL && is_left_out(was, is)) {
                i++;
                continue;
            }
            /* Directories come and go with what is in them; one without a slash is a root. */
            bool empty = any->type == FILE_DIRECTORY && strchr(any->path, '/') != NULL &&
                         (is != NULL ? is_empty_at(b, j) : is_empty_at(a, i));
            if (any->type != FILE_DIRECTORY || empty)
                add_change(c, any->path, any->type != FILE_DIRECTORY);
        } else if (!tracked_same_tree(was, is)) {
            add_change(c, any->path, true);
        } else if (!tracked_same_attributes(was, is)) {
            add_change(c, any->path, false);
        }
        i += order <= 0;
        j += order >= 0;
    }
}

/* Whether others are too large than were before. Where the rules are others, too, one that is no
 * longer listed is left out by its name, for all that is known. */
static bool large_differ(const struct work *w)
{
    for (size_t i = 0; i < w->now->large_count; i++)
        if (!history_manifest_has_large(w->before, w->now->large[i]))
            return true;
    return !w->other_before && w->now->large_count != w->before->large_count;
}

/* Removing comes first: what was a file may be a directory now. */
static int commit_changes(struct work *w, const char *message, struct error *err)
{
    const char *parent = w->import.commit[0] != '\0' ? w->import.commit : w->r->head;
    char copy[GIT_NAME_SIZE];
    memcpy(copy, parent, GIT_NAME_SIZE);
    const struct import_commit commit = {
        .parent = copy, .message = message, .time_ms = time_now_ms()};
    if (import_commit_begin(&w->import, &commit, err) < 0 || each_pair(w, remove_pair, err) < 0 ||
        each_pair(w, put_pair, err) < 0 || put_rules(w, err) < 0 ||
        put_attributes(w, w->now, err) < 0)
        return -1;
    return import_commit_end(&w->import, err);
}

static int commit_found(struct work *w, struct arena *arena, struct history_committed *committed,
                        struct error *err)
{
    _cleanup_buf_ struct buf message = BUF_INIT(MESSAGE_MAX);
    struct changes changes = {.w = w, .arena = arena, .message = &message};
    const struct history_commit_request *request = w->request;
    if (w->r->head[0] == '\0' && commit_first(w, err) < 0)
        return -1;
    if (request->execution == NULL)
        return 0;
    buf_addf(&message, "%s\n\nExecution-Id: %s\n", request->message, request->execution);
    workers_run(w->r->git->workers, find_changes_on_worker, &changes);
    if (changes.count == 0 && !large_differ(w) && !request->even_empty)
        return 0;
    if (buf_check(&message, "a commit's message", err) < 0 ||
        commit_changes(w, message.data, err) < 0)
        return -1;
    *committed = (struct history_committed){.made = true,
                                            .files = changes.files,
                                            .file_count = changes.count,
                                            .files_cut = changes.cut};
    return 0;
}

/* ---- all of it ---- */

static void forget_fresh_times(struct work *w)
{
    for (size_t i = 0; i < w->now->count; i++) {
        struct tracked *item = &w->now->items[i];
        if (item->ctime_ns + TICK_NS >= w->started_ns)
            item->ctime_ns = 0;
    }
}

static bool has_files(const struct manifest *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].type != FILE_DIRECTORY || strchr(m->items[i].path, '/') != NULL)
            return true;
    return m->large_count > 0;
}

/* Too much of it, and what was left out looks as if it had gone: wrong, and harmless. */
static void mark_on_worker(void *arg)
{
    struct work *w = arg;
    history_manifest_mark(w->before, w->ignore);
}

/* What the newest commit says of the rules, and what is in it that they leave out. */
static void compare_rules(struct work *w, uint64_t rules)
{
    w->new_rules = w->before->committed != rules;
    w->other_before = w->before->rules != rules;
    if (w->other_before && w->r->head[0] != '\0')
        workers_run(w->r->git->workers, mark_on_worker, w);
}

static int compare_and_commit(struct work *w, struct arena *arena,
                              struct history_committed *committed, struct error *err)
{
    struct timespec now;
    uint64_t rules = history_ignore_mark(w->ignore);
    clock_gettime(CLOCK_REALTIME, &now);
    w->started_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (repository_manifest(w->r, rules, w->before, err) < 0 ||
        w->source->list(w->source->ctx, take_entry, w, err) < 0)
        return -1;
    workers_run(w->r->git->workers, sort_on_worker, w->now);
    compare_rules(w, rules);
    bool wanted = w->r->head[0] != '\0' || w->request->execution == NULL ||
                  w->request->even_empty || has_files(w->now);
    if (!wanted)
        return 0;
    if (repository_make(w->r, err) < 0)
        return -1;
    w->import.repository_fd = w->r->fd;
    if (each_pair(w, keep_blob, err) < 0 || read_changed(w, arena, err) < 0 ||
        commit_found(w, arena, committed, err) < 0 || import_end(&w->import, err) < 0)
        return -1;
    if (w->import.commit[0] != '\0')
        memcpy(w->r->head, w->import.commit, GIT_NAME_SIZE);
    forget_fresh_times(w);
    w->now->rules = rules;
    w->now->committed = w->import.commit[0] != '\0' ? rules : w->before->committed;
    memcpy(w->now->commit, w->r->head, GIT_NAME_SIZE);
    memcpy(w->before->commit, w->r->head, GIT_NAME_SIZE);
    /* Where there is no execution to commit for, what is new stays so. Without it the next
     * comparison is by content, and as right. */
    repository_save_manifest(w->r, w->request->execution == NULL ? w->before : w->now, NULL);
    return 0;
}

int history_commit_files(struct repository *r, const struct history_source *source,
                         const struct history_commit_request *request, struct arena *arena,
                         struct manifest *ret_manifest, struct history_committed *ret_committed,
                         struct error *err)
{
    _cleanup_manifest_ struct manifest before;
    history_manifest_init(&before);
    struct history_committed committed = {0};
    struct work w = {
        .r = r,
        .source = source,
        .request = request,
        .now = ret_manifest,
        .before = &before,
        .ignore = request->ignore.data != NULL ? request->ignore : history_rules_usual.ignore,
        .import = {.program = r->git, .repository_fd = r->fd, .pack_max = request->pack_max}};
    buf_init(&w.held, HELD_MAX + 1);
    int rc = compare_and_commit(&w, arena, &committed, err);
    import_cancel(&w.import);
    buf_release(&w.held);
    if (rc == 0)
        *ret_committed = committed;
    return rc;
}
