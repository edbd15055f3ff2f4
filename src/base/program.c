/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs are found from where the running one is, never through PATH or a path fixed at build
 * time: whoever runs a build folder's cella must get that folder's warden, not an installed one of
 * another version.
 */

#include "base/program.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Linux's PATH_MAX. (<limits.h> would be this folder's own header here.) */
enum { PROGRAM_PATH_MAX = 4096 };

static const char *const places[] = {"", "../libexec/cella/"};

int program_path(const char *name, char *out, size_t size, struct error *err)
{
    char folder[PROGRAM_PATH_MAX], path[PROGRAM_PATH_MAX + 64];
    ssize_t len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (len < 0)
        return error_sys(err, "finding the running program");
    folder[len] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        return error_set(err, ERROR_INTERNAL, "the running program has no folder");
    slash[1] = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        int n = snprintf(path, sizeof(path), "%s%s%s", folder, places[i], name);
        if (n < 0 || (size_t)n >= sizeof(path) || (size_t)n >= size || access(path, X_OK) < 0)
            continue;
        memcpy(out, path, (size_t)n + 1);
        return 0;
    }
    return error_set(err, ERROR_FILE_NOT_FOUND, "%s is neither in %s nor in %s%s", name, folder,
                     folder, places[1]);
}

void program_allow_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
