/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Users and groups of the sandbox, read from its own passwd and group files.
 *
 * The files belong to the sandbox and may hold anything: they are read up to a maximum, lines
 * that make no sense are passed over, and nothing is cached beyond what a caller keeps. libc's
 * getpwnam() is not used, since it would take name services into account that a static
 * program cannot load.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"

enum {
    USER_NAME_MAX = 255,
    USER_PATH_MAX = 1024,
    USER_GROUPS_MAX = 128,
};

struct user {
    uid_t uid;
    gid_t gid;
    char name[USER_NAME_MAX + 1];
    char home[USER_PATH_MAX];
    char shell[USER_PATH_MAX];
    size_t group_count; /* gid is the first of them */
    gid_t groups[USER_GROUPS_MAX];
};

/* The user with that name, or that number; a number need not be in the file. INVALID_ARGUMENT
 * when there is none. `etc` is the folder with passwd and group: "/etc" but for tests. */
int users_find(const char *etc, const char *who, struct user *ret_user, struct error *err);

/*
 * The same for somebody who asks ahead of need and again later: the second time the files are only
 * looked at, not read, if they are what they were. Zero it before use.
 */
struct user_memo {
    bool used;
    char who[USER_NAME_MAX + 1];
    struct user user;
    struct stat passwd, group;
};

int users_find_again(const char *etc, const char *who, struct user_memo *memo,
                     struct user *ret_user, struct error *err);

/*
 * Names for ids, for one request: remembers the last few. Zero it before use. The names are
 * valid until the next call of the same kind.
 */
enum { ID_NAMES_KEPT = 8 };

struct id_name {
    bool used;
    unsigned id;
    char name[USER_NAME_MAX + 1];
};

struct id_names {
    const char *file; /* "/etc/passwd" or "/etc/group" */
    unsigned next;
    struct id_name kept[ID_NAMES_KEPT];
};

/* The name, or the number in digits. */
const char *id_names_get(struct id_names *names, unsigned id);
