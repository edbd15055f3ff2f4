/* SPDX-License-Identifier: Apache-2.0 */

/* Finds the server of a data folder, and makes sure that its socket is its own. */

#include "cli/local_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "cli/settings.h"

enum { SHOWN_MAX = 100 }; /* characters of a path in a message that holds it twice */

int local_server_missing(const char *data, struct error *err)
{
    bool usual = strcmp(data, DEFAULT_DATA_DIR) == 0;
    return error_set(err, ERROR_UNAVAILABLE,
                     "no server is running with the data folder %.*s: start it with `cella "
                     "server%s%.*s`, or name another one with --url or CELLA_URL",
                     SHOWN_MAX, data, usual ? "" : " --data ", usual ? 0 : SHOWN_MAX, data);
}

static int cannot_look(const char *path, struct error *err)
{
    return error_set(err, ERROR_PERMISSION_DENIED,
                     "%.*s belongs to the server, and you may not look into it: use sudo, or name "
                     "the server with --url or CELLA_URL and give a key with CELLA_API_KEY, or use "
                     "`cella login`",
                     SHOWN_MAX, path);
}

/* The URL that the folder's last server wrote down, which may have ended since. */
static bool read_url(const char *data, char out[LOCAL_URL_MAX])
{
    char text[LOCAL_URL_MAX + 128];
    if (settings_read(data, LAYOUT_SERVER, text, sizeof(text), NULL) < 0)
        return false;
    /* Three pids come before it. */
    char *line = text;
    for (int i = 0; i < 3 && line != NULL; i++) {
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    if (line == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    if (strstr(line, ":/") == NULL || strlen(line) >= LOCAL_URL_MAX)
        return false;
    memcpy(out, line, strlen(line) + 1);
    return true;
}

/* Whether nobody but root and the caller could have put something into this folder. */
static int check_owner(int fd, const char *path, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_sys(err, "%.*s", SHOWN_MAX, path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "%.*s belongs to user %u, who is neither root nor you: a key sent to the "
                         "server there could be theirs to read",
                         SHOWN_MAX, path, st.st_uid);
    if ((st.st_mode & 022) != 0)
        return error_set(err, ERROR_PERMISSION_DENIED,
                         "others may write to %.*s, so the server there could be anybody's: chmod "
                         "0750",
                         SHOWN_MAX, path);
    return 0;
}

int local_server_find(const char *data, struct local_server *ret_server, struct error *err)
{
    struct local_server server = {.url = ""};
    char path[SETTINGS_PATH_MAX];
    struct stat st;
    if (snprintf(path, sizeof(path), "%s/%s", data, LAYOUT_RUN) >= (int)sizeof(path))
        return error_set(err, ERROR_INVALID_PATH, "the path of the data folder is too long");
    _cleanup_fd_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == EACCES)
        return cannot_look(data, err);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return local_server_missing(data, err);
    if (fd < 0)
        return error_sys(err, "%.*s", SHOWN_MAX, path);
    if (check_owner(fd, path, err) < 0)
        return -1;
    const char *name = &LAYOUT_API_SOCK[sizeof(LAYOUT_RUN)];
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == EACCES ? cannot_look(path, err) : local_server_missing(data, err);
    if (!S_ISSOCK(st.st_mode))
        return local_server_missing(data, err);
    read_url(data, server.url);
    /* By the descriptor: the folder that was checked is the one that is used, and its path may be
     * longer than a socket's address can be. */
    snprintf(server.address, sizeof(server.address), "unix:/proc/self/fd/%d/%s", steal_fd(&fd),
             name);
    *ret_server = server;
    return 0;
}
