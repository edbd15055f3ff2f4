/* SPDX-License-Identifier: Apache-2.0 */

/* Looking at sandboxes: one, by any of its names, and all of a workspace. Nothing here waits. */

#include "sandbox/sandbox.h"

#include <string.h>

#include "sandbox/metadata.h"
#include "sandbox/state.h"

int sandboxes_get(struct sandboxes *s, const char *workspace, const char *name, struct arena *arena,
                  struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    sandbox_info(sb, arena, ret_info);
    return 0;
}

int sandboxes_get_by_id(struct sandboxes *s, const char *id, struct arena *arena,
                        struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    if (sb == NULL || sb->status == SANDBOX_DELETING)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND, "there is no sandbox \"%.63s\"", id);
    sandbox_info(sb, arena, ret_info);
    return 0;
}

const char **sandboxes_ids(struct sandboxes *s, struct arena *arena, size_t *ret_count)
{
    struct sandbox *sb, *next;
    size_t count = 0;
    const char **ids = arena_alloc(arena, (HASH_CNT(by_id, s->ids) + 1) * sizeof(*ids));
    HASH_ITER(by_id, s->ids, sb, next)
    {
        ids[count++] = arena_strdup(arena, sb->id);
    }
    *ret_count = count;
    return ids;
}

bool sandboxes_has(struct sandboxes *s, const char *id)
{
    struct sandbox *sb;
    HASH_FIND(by_id, s->ids, id, strlen(id), sb);
    return sb != NULL;
}

int sandboxes_get_external(struct sandboxes *s, const char *workspace, const char *external_id,
                           struct arena *arena, struct sandbox_info *ret_info, struct error *err)
{
    struct sandbox *sb = sandbox_find_external(s, workspace, external_id);
    if (sb == NULL)
        return error_set(err, ERROR_SANDBOX_NOT_FOUND,
                         "there is no sandbox with the externalId \"%.64s\"", external_id);
    sandbox_info(sb, arena, ret_info);
    return 0;
}

int sandboxes_check_revision(struct sandboxes *s, const char *workspace, const char *name,
                             uint64_t revision, struct error *err)
{
    const struct sandbox *sb = sandbox_find(s, workspace, name, err);
    if (sb == NULL)
        return -1;
    if (sb->revision != revision)
        return error_set(err, ERROR_REVISION_CONFLICT,
                         "sandbox \"%s\" is at revision rev-%llu, not rev-%llu: get it again",
                         sb->name, (unsigned long long)sb->revision, (unsigned long long)revision);
    return 0;
}

static bool contains(const char *text, const char *part)
{
    return text != NULL && strstr(text, part) != NULL;
}

static bool matches(const struct sandbox *sb, const struct sandbox_filter *filter)
{
    if (strcmp(sb->workspace, filter->workspace) != 0 ||
        (filter->by_status && sb->status != filter->status))
        return false;
    if (filter->group != NULL &&
        strcmp(sb->group == NULL ? "" : sb->group->name, filter->group) != 0)
        return false;
    if (filter->contains != NULL && !contains(sb->name, filter->contains) &&
        !contains(sb->metadata.display_name, filter->contains))
        return false;
    return metadata_has_labels(sb->metadata.labels, filter->labels);
}

static bool is_behind(const struct sandbox *sb, const struct sandbox_filter *filter)
{
    if (filter->after_ms == 0)
        return true;
    return filter->newest_first ? sb->created_ms < filter->after_ms
                                : sb->created_ms > filter->after_ms;
}

static struct sandbox *first_of(const struct sandboxes *s, const struct sandbox_filter *filter)
{
    struct sandbox *sb = s->ids;
    return filter->newest_first && sb != NULL ? ELMT_FROM_HH(sb->by_id.tbl, sb->by_id.tbl->tail)
                                              : sb;
}

/* Those that match, and how many there are, whatever limit, offset and after_ms say. The map keeps
 * the order in which sandboxes were put in, which is the one of created_ms. */
static struct sandbox **choose(const struct sandboxes *s, const struct sandbox_filter *filter,
                               struct arena *arena, size_t *ret_count, size_t *ret_total)
{
    size_t most = HASH_CNT(by_id, s->ids) < filter->limit ? HASH_CNT(by_id, s->ids) : filter->limit;
    struct sandbox **chosen = arena_alloc(arena, (most + 1) * sizeof(struct sandbox *));
    size_t total = 0, behind = 0, count = 0;
    for (struct sandbox *sb = first_of(s, filter); sb != NULL;
         sb = filter->newest_first ? sb->by_id.prev : sb->by_id.next) {
        if (!matches(sb, filter))
            continue;
        total++;
        if (is_behind(sb, filter) && behind++ >= filter->offset && count < most)
            chosen[count++] = sb;
    }
    *ret_count = count;
    *ret_total = total;
    return chosen;
}

int sandboxes_list(struct sandboxes *s, const struct sandbox_filter *filter, struct arena *arena,
                   struct sandbox_info **ret_items, size_t *ret_count, size_t *ret_total,
                   struct error *err)
{
    size_t count, total;
    struct sandbox **chosen = choose(s, filter, arena, &count, &total);
    if (arena_check(arena, count * sizeof(struct sandbox_info), err) < 0)
        return -1;
    struct sandbox_info *items = arena_alloc(arena, (count + 1) * sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        if (arena_check(arena, chosen[i]->env_len, err) < 0)
            return -1;
        sandbox_info(chosen[i], arena, &items[i]);
    }
    *ret_items = items;
    *ret_count = count;
    *ret_total = total;
    return 0;
}

int sandboxes_list_ids(struct sandboxes *s, const struct sandbox_filter *filter,
                       struct arena *arena, const char ***ret_ids, size_t *ret_count,
                       size_t *ret_total, struct error *err)
{
    size_t count, total;
    struct sandbox **chosen = choose(s, filter, arena, &count, &total);
    if (arena_check(arena, count * (sizeof(char *) + SANDBOX_ID_LEN + 1), err) < 0)
        return -1;
    const char **ids = arena_alloc(arena, (count + 1) * sizeof(*ids));
    for (size_t i = 0; i < count; i++)
        ids[i] = arena_strdup(arena, chosen[i]->id);
    *ret_ids = ids;
    *ret_count = count;
    *ret_total = total;
    return 0;
}
