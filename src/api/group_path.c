/* SPDX-License-Identifier: Apache-2.0 */

/* Where a sandbox of a group is found. */

#include "api/group_path.h"

#include <string.h>

/* The length of a segment behind `prefix`, and moves *at behind it; 0 when there is none. */
static size_t take(const char **at, const char *prefix, const char **ret_segment)
{
    size_t len = strlen(prefix);
    if (strncmp(*at, prefix, len) != 0)
        return 0;
    *ret_segment = *at + len;
    *at = *ret_segment + strcspn(*ret_segment, "/");
    return (size_t)(*at - *ret_segment);
}

const char *group_path(struct arena *arena, const char *path)
{
    const char *at = path, *group, *name;
    size_t group_len = take(&at, "/v0/groups/", &group);
    size_t name_len = group_len == 0 ? 0 : take(&at, "/sandbox/", &name);
    if (name_len == 0)
        return path;
    return arena_printf(arena, "/v0/sandbox/%.*s%%2F%.*s%s", (int)group_len, group, (int)name_len,
                        name, at);
}
