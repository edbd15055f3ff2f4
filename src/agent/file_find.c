/* SPDX-License-Identifier: Apache-2.0 */

/*
 * FILE_FIND: by name, by a few letters of the path, by content. One walk in memory that does not
 * grow with the tree, bounded in results and time; what was found when the time is over is sent.
 */

#include "agent/file_find.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/globs.h"
#include "agent/file_path.h"
#include "agent/fuzzy.h"
#include "agent/walk.h"
#include "base/cleanup.h"

enum { WALK_DEPTH = 100 };

static uint64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool find_out_of_time(struct finder *finder)
{
    if (!finder->cut && monotonic_ms() > finder->deadline_ms)
        finder->cut = true;
    return finder->cut;
}

const char *find_path(struct finder *finder, const char *below)
{
    const char *root = finder->request->path;
    bool slash = root[strlen(root) - 1] == '/';
    int len = snprintf(finder->path, sizeof(finder->path), "%s%s%s", root, slash ? "" : "/", below);
    return len < (int)sizeof(finder->path) ? finder->path : NULL;
}

enum walk_next find_send(struct finder *finder, struct file_match *match, struct error *err)
{
    match->path = find_path(finder, match->path);
    if (match->path == NULL)
        return WALK_ON;
    if (file_answer(finder->worker, &file_match_schema, finder->id, match, err) < 0)
        return WALK_FAIL;
    if (++finder->found < finder->request->results_max)
        return WALK_ON;
    finder->cut = true;
    return WALK_STOP;
}

static enum file_type type_of(const struct stat *st)
{
    if (S_ISREG(st->st_mode))
        return FILE_REGULAR;
    if (S_ISDIR(st->st_mode))
        return FILE_DIRECTORY;
    return S_ISLNK(st->st_mode) ? FILE_SYMLINK : FILE_OTHER;
}

/* --- the best so far, for fuzzy searching --- */

struct best {
    uint64_t score;
    uint64_t type;
    char *path;
};

/* The worst of those that are kept is on top. */
static void sift_down(struct best *heap, size_t count, size_t at)
{
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (heap[child].score < heap[worst].score)
                worst = child;
        if (worst == at)
            return;
        struct best swap = heap[at];
        heap[at] = heap[worst];
        heap[worst] = swap;
        at = worst;
    }
}

static void sift_up(struct best *heap, size_t at)
{
    while (at > 0 && heap[at].score < heap[(at - 1) / 2].score) {
        struct best swap = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = swap;
        at = (at - 1) / 2;
    }
}

static enum walk_next keep_best(struct finder *finder, const struct walk_item *item, uint64_t score,
                                struct error *err)
{
    bool full = finder->best_count == finder->request->results_max;
    finder->more |= full;
    if (full && score <= finder->best[0].score)
        return WALK_ON;
    char *path = strdup(item->path);
    if (path == NULL) {
        error_sys(err, "%.200s", item->path);
        return WALK_FAIL;
    }
    struct best entry = {score, type_of(&item->st), path};
    if (full) {
        free(finder->best[0].path);
        finder->best[0] = entry;
        sift_down(finder->best, finder->best_count, 0);
    } else {
        finder->best[finder->best_count] = entry;
        sift_up(finder->best, finder->best_count++);
    }
    return WALK_ON;
}

static int best_first(const void *a, const void *b)
{
    const struct best *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return strcmp(x->path, y->path);
}

static int send_best(struct finder *finder, struct error *err)
{
    if (finder->best_count > 0)
        qsort(finder->best, finder->best_count, sizeof(*finder->best), best_first);
    finder->cut |= finder->more;
    bool cut = finder->cut;
    for (size_t i = 0; i < finder->best_count; i++) {
        const struct best *best = &finder->best[i];
        struct file_match match = {.path = best->path, .type = best->type, .score = best->score};
        if (find_send(finder, &match, err) == WALK_FAIL)
            return -1;
    }
    finder->cut = cut; /* as many as were asked for is not yet more */
    return 0;
}

/* --- one name --- */

static enum walk_next visit(void *ctx, const struct walk_item *item, struct error *err)
{
    struct finder *finder = ctx;
    const struct file_find *request = finder->request;
    enum file_type type = type_of(&item->st);
    if (find_out_of_time(finder))
        return WALK_STOP;
    if ((request->flags & FIND_NO_HIDDEN) && item->name[0] == '.')
        return WALK_ON;
    uint64_t wanted = request->flags & (FIND_FILES | FIND_DIRECTORIES);
    bool is_directory = type == FILE_DIRECTORY;
    if (wanted == FIND_FILES && is_directory)
        return WALK_ON;
    if (wanted == FIND_DIRECTORIES && !is_directory)
        return WALK_ON;
    if (request->patterns.len > 0 && !globs_match(request->patterns, item->path, item->name))
        return WALK_ON;
    struct file_match match = {.path = item->path, .type = type};
    uint64_t score;
    switch (request->mode) {
    case FIND_NAMES:
        return find_send(finder, &match, err);
    case FIND_FUZZY:
        score = fuzzy_score(request->query, item->path);
        return score == 0 ? WALK_ON : keep_best(finder, item, score, err);
    default:
        return type == FILE_REGULAR ? find_in_file(finder, item, err) : WALK_ON;
    }
}

static bool enters(void *ctx, const char *path, const char *name)
{
    const struct finder *finder = ctx;
    if ((finder->request->flags & FIND_NO_HIDDEN) && name[0] == '.')
        return false;
    return !globs_match(finder->request->exclude, path, name);
}

/* --- the request --- */

static int check(const struct file_find *request, struct error *err)
{
    if (path_check(request->path, err) < 0)
        return -1;
    if (request->mode > FIND_CONTENT || request->results_max < 1 ||
        request->results_max > FIND_RESULTS_MAX || request->time_ms > FIND_TIME_MAX_MS)
        return error_set(err, ERROR_INVALID_ARGUMENT, "no such search");
    if (request->mode != FIND_NAMES && (request->query == NULL || request->query[0] == '\0'))
        return error_set(err, ERROR_INVALID_ARGUMENT, "a search needs something to look for");
    return 0;
}

static void finder_release(struct finder *finder)
{
    for (size_t i = 0; i < finder->best_count; i++)
        free(finder->best[i].path);
    free(finder->best);
    free(finder->text);
}

int file_find(struct file_worker *worker, uint32_t id, const void *msg, struct error *err)
{
    const struct file_find *request = msg;
    if (check(request, err) < 0)
        return -1;
    _cleanup_(finder_release) struct finder finder = {
        .worker = worker,
        .id = id,
        .request = request,
        .deadline_ms =
            monotonic_ms() + (request->time_ms == 0 ? FIND_TIME_MAX_MS : request->time_ms),
    };
    if (request->mode == FIND_FUZZY)
        finder.best = calloc(request->results_max, sizeof(*finder.best));
    if (request->mode == FIND_CONTENT)
        finder.text = malloc(FIND_BUFFER_SIZE);
    if (request->mode != FIND_NAMES && finder.best == NULL && finder.text == NULL)
        return error_sys(err, "searching");
    int fd = path_open(request->path, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return error_sys(err, "%.200s", request->path);
    struct walk_plan plan = {WALK_DEPTH, visit, enters, &finder};
    bool deeper;
    if (walk(fd, &plan, &deeper, err) < 0 || send_best(&finder, err) < 0)
        return -1;
    struct file_found found = {finder.found, finder.cut || deeper};
    return file_answer(worker, &file_found_schema, id, &found, err);
}
