/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Searching the files of a sandbox: by name, by a few letters of the path, by content. On
 * coroutines, and with paths, as in files.h. The request is the wire's own (struct file_find);
 * results_max 1…FIND_RESULTS_MAX. Links are not followed; binary files and those over FIND_FILE_MAX
 * are not searched by content.
 */

#include "sandbox/files.h"

struct file_matches {
    struct file_match *items; /* FIND_FUZZY: the best first; else by path, then by line */
    size_t count;
    bool cut; /* there may be more */
};

int sandbox_file_find(struct sandboxes *s, const char *workspace, const char *name,
                      const struct file_find *request, struct arena *arena,
                      struct file_matches *ret_matches, struct error *err);
