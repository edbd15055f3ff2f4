/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Extended attributes by path: the calls on descriptors do not take O_PATH ones, and those are what
 * a look at a file holds. /proc/self/fd leads to the very file, whatever its name means by now.
 */

#include "agent/file_attributes.h"

#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "agent/users.h"
#include "base/cleanup.h"

enum { VALUE_MAX = 4096 };

static const char user_namespace[] = "user.";

int file_owner(const char *user, struct path_owner *ret_owner, struct error *err)
{
    struct user found;
    if (users_find("/etc", user, &found, err) < 0)
        return -1;
    *ret_owner = (struct path_owner){found.uid, found.gid};
    return 0;
}

int file_attributes_set(int fd, struct slice attributes, const char *path, struct error *err)
{
    strv_each (item, attributes) {
        char name[XATTR_NAME_MAX + 1];
        size_t len = strcspn(item, "=");
        if (item[len] == '\0' || len >= sizeof(name) ||
            strncmp(item, user_namespace, sizeof(user_namespace) - 1) != 0)
            return error_set(err, ERROR_INVALID_ARGUMENT,
                             "%.100s: \"%.100s\" is no attribute \"user.name=value\"", path, item);
        memcpy(name, item, len);
        name[len] = '\0';
        const char *value = item + len + 1;
        if (fsetxattr(fd, name, value, strlen(value), 0) < 0)
            return error_sys(err, "%.200s: attribute %.100s", path, name);
    }
    return 0;
}

/* "name=value" with its NUL, or nothing. */
static void add_value(const char *path, const char *name, struct buf *out)
{
    char value[VALUE_MAX];
    ssize_t len = getxattr(path, name, value, sizeof(value));
    size_t name_len = strlen(name);
    if (len < 0 || memchr(value, '\0', (size_t)len) != NULL ||
        out->len + name_len + (size_t)len + 2 > out->max)
        return;
    buf_add(out, name, name_len);
    buf_addc(out, '=');
    buf_add(out, value, (size_t)len);
    buf_addc(out, '\0');
}

void file_attributes_get(int fd, const char *name, const char *prefix, struct buf *out)
{
    char path[PATH_NAME_SIZE + 64], names[FILE_ATTRIBUTES_MAX];
    snprintf(path, sizeof(path), "/proc/self/fd/%d%s%s", fd, name[0] == '\0' ? "" : "/", name);
    ssize_t len = listxattr(path, names, sizeof(names));
    if (len <= 0)
        return;
    const struct slice list = {names, (size_t)len};
    strv_each (item, list)
        if (strncmp(item, prefix, strlen(prefix)) == 0)
            add_value(path, item, out);
}
