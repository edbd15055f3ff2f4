/* SPDX-License-Identifier: Apache-2.0 */

/* fnmatch(3) over a list; but most of what is listed are plain names, and ten thousand files are
 * asked about each of them. */

#include "agent/file_glob.h"

#include <fnmatch.h>
#include <string.h>

static bool is_plain(const char *pattern)
{
    return pattern[strcspn(pattern, "*?[\\")] == '\0';
}

static bool fits(const char *pattern, const char *text)
{
    return is_plain(pattern) ? strcmp(pattern, text) == 0 : fnmatch(pattern, text, 0) == 0;
}

bool globs_match(struct slice patterns, const char *path, const char *name)
{
    strv_each (pattern, patterns) {
        size_t len = strlen(pattern);
        if (len == 0)
            continue;
        if (fits(pattern, name) || fits(pattern, path))
            return true;
        if (strncmp(path, pattern, len) == 0 && path[len] == '/')
            return true;
    }
    return false;
}
