/* SPDX-License-Identifier: Apache-2.0 */

/* fnmatch(3) over a list. */

#include "agent/file_glob.h"

#include <fnmatch.h>
#include <string.h>

bool globs_match(struct slice patterns, const char *path, const char *name)
{
    strv_each (pattern, patterns) {
        size_t len = strlen(pattern);
        if (len == 0)
            continue;
        if (fnmatch(pattern, name, 0) == 0 || fnmatch(pattern, path, 0) == 0)
            return true;
        if (strncmp(path, pattern, len) == 0 && path[len] == '/')
            return true;
    }
    return false;
}
