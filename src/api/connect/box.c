/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Users and paths. The two users that every image has are known; where another one is at home says
 * the sandbox's passwd file, which is read as the stranger's text that it is.
 */

#include "api/connect/box.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/names.h"
#include "sandbox/files.h"

enum { PASSWD_MAX = 256 * 1024, USER_MAX = 255, PASSWD_FIELDS = 7 };

int connect_user(struct http_exchange *x, const char *fallback, const char **ret_user,
                 struct error *err)
{
    const char *field = http_header(x, "Authorization");
    struct slice text;
    if (field == NULL || strncasecmp(field, "Basic ", 6) != 0) {
        *ret_user = fallback;
        return 0;
    }
    field += 6 + strspn(field + 6, " ");
    if (json_base64_decode(http_arena(x), slice_of(field), &text, NULL) < 0 ||
        memchr(text.data, '\0', text.len) != NULL)
        return error_set(err, ERROR_UNAUTHORIZED,
                         "Authorization: not the base64 of \"user:\" after Basic");
    const char *colon = memchr(text.data, ':', text.len);
    size_t len = colon == NULL ? text.len : (size_t)(colon - text.data);
    if (len == 0 || len > USER_MAX)
        return error_set(err, ERROR_UNAUTHORIZED, "Authorization: names no user");
    *ret_user = arena_dup(http_arena(x), text.data, len);
    return 0;
}

/* --- homes --- */

static int read_passwd(const struct connect_box *box, struct arena *arena, char **ret_text,
                       struct error *err)
{
    struct file_transfer *t;
    struct file_entry entry;
    size_t len, used = 0;
    char *text = arena_alloc(arena, PASSWD_MAX + 1);
    if (file_read_begin(box->api->sandboxes, box->workspace, box->sandbox, "/etc/passwd", 0,
                        PASSWD_MAX, arena, &entry, &t, err) < 0)
        return -1;
    int rc;
    while ((rc = file_read_next(t, &len, err)) == 0 && len > 0 && used + len <= PASSWD_MAX) {
        if ((rc = file_transfer_take(t, text + used, len, err)) < 0)
            break;
        used += len;
    }
    file_transfer_end(t);
    text[used] = '\0';
    *ret_text = text;
    return rc;
}

/* The sixth field of the user's line; NULL when there is none. */
static const char *home_in(char *text, const char *user)
{
    char *line, *lines = text;
    while ((line = strsep(&lines, "\n")) != NULL) {
        char *fields[PASSWD_FIELDS], *rest = line;
        size_t n = 0;
        while (n < PASSWD_FIELDS && (fields[n] = strsep(&rest, ":")) != NULL)
            n++;
        if (n == PASSWD_FIELDS && strcmp(fields[0], user) == 0 && fields[5][0] == '/')
            return fields[5];
    }
    return NULL;
}

int connect_box_enter(struct connect_box *box, struct arena *arena, struct error *err)
{
    char *text;
    if (strcmp(box->user, "user") == 0) {
        box->home = "/home/user";
        return 0;
    }
    if (strcmp(box->user, "root") == 0) {
        box->home = "/root";
        return 0;
    }
    if (read_passwd(box, arena, &text, err) < 0)
        return -1;
    box->home = home_in(text, box->user);
    if (box->home == NULL)
        return error_set(err, ERROR_INVALID_ARGUMENT, "the sandbox has no user \"%.80s\"",
                         box->user);
    return 0;
}

int connect_path(const struct connect_box *box, struct arena *arena, const char *path,
                 const char **ret_path, struct error *err)
{
    char *whole = arena_alloc(arena, PATH_BYTES_MAX + 1);
    if (path == NULL)
        path = "";
    if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
        path += path[1] == '/' ? 2 : 1;
    if (path[0] != '/')
        path = arena_printf(arena, "%s/%s", box->home, path);
    if (path_normalize(path, strlen(path), whole, err) < 0)
        return -1;
    *ret_path = whole;
    return 0;
}
