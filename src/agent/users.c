/* SPDX-License-Identifier: Apache-2.0 */

/*
 * passwd and group, parsed line by line out of one bounded read. Only short-lived children of
 * the agent (a command on its way to exec, a file worker) come here, so the memory goes with them.
 */

#include "agent/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/slice.h"

enum {
    FILE_BYTES_MAX = 1 << 20,
    FIELDS_MAX = 7, /* name:password:uid:gid:comment:home:shell */
};

/* A missing or unreadable file is an empty one: a sandbox without /etc/passwd still has root. */
static void read_file(const char *path, struct buf *ret_content)
{
    /* O_NONBLOCK: what is there may be a fifo. */
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    for (;;) {
        size_t room = ret_content->max - ret_content->len;
        char *to = buf_reserve(ret_content, room < 4096 ? room : 4096);
        if (to == NULL || room == 0)
            return;
        ssize_t n = read(fd, to, room < 4096 ? room : 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        buf_commit(ret_content, (size_t)n);
    }
}

/* Cuts the next line into its fields. Returns their number, -1 at the end of the file. */
static int next_line(const struct buf *content, size_t *at, struct slice fields[FIELDS_MAX])
{
    if (*at >= content->len)
        return -1;
    const char *line = content->data + *at;
    const char *end = memchr(line, '\n', content->len - *at);
    if (end == NULL)
        end = content->data + content->len;
    *at = (size_t)(end - content->data) + 1;

    int count = 0;
    while (count < FIELDS_MAX) {
        const char *colon = memchr(line, ':', (size_t)(end - line));
        const char *stop = colon == NULL ? end : colon;
        fields[count++] = (struct slice){line, (size_t)(stop - line)};
        if (colon == NULL)
            break;
        line = colon + 1;
    }
    return count;
}

/* Digits only, and not (uid_t)-1, which means "leave it" to the kernel. */
static bool parse_id(struct slice text, unsigned *ret_id)
{
    if (text.len == 0 || text.len > 10)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text.data[i] - '0');
    }
    if (value >= UINT32_MAX)
        return false;
    *ret_id = (unsigned)value;
    return true;
}

/* Copies what fits and holds no NUL; else takes the fallback. */
static void take_text(char *to, size_t size, struct slice text, const char *fallback)
{
    if (text.len == 0 || text.len >= size || memchr(text.data, '\0', text.len) != NULL)
        text = slice_of(fallback);
    memcpy(to, text.data, text.len);
    to[text.len] = '\0';
}

static bool find_passwd(const struct buf *passwd, const char *who, struct user *user)
{
    unsigned number = 0, uid, gid;
    bool numeric = parse_id(slice_of(who), &number);
    struct slice f[FIELDS_MAX];
    size_t at = 0;
    for (int count; (count = next_line(passwd, &at, f)) >= 0;) {
        if (count != FIELDS_MAX || !parse_id(f[2], &uid) || !parse_id(f[3], &gid))
            continue;
        if (numeric ? uid != number : !slice_eq(f[0], slice_of(who)))
            continue;
        user->uid = uid;
        user->gid = gid;
        take_text(user->name, sizeof(user->name), f[0], who);
        take_text(user->home, sizeof(user->home), f[5], "/");
        take_text(user->shell, sizeof(user->shell), f[6], "/bin/sh");
        return true;
    }
    if (!numeric && strcmp(who, "root") != 0)
        return false;
    user->uid = user->gid = numeric ? number : 0;
    take_text(user->name, sizeof(user->name), slice_of(who), who);
    take_text(user->home, sizeof(user->home), slice_of("/"), "/");
    take_text(user->shell, sizeof(user->shell), slice_of("/bin/sh"), "/bin/sh");
    return true;
}

static bool is_member(struct slice members, struct slice name)
{
    while (members.len > 0) {
        const char *comma = memchr(members.data, ',', members.len);
        size_t len = comma == NULL ? members.len : (size_t)(comma - members.data);
        if (slice_eq((struct slice){members.data, len}, name))
            return true;
        if (comma == NULL)
            return false;
        members = (struct slice){comma + 1, members.len - len - 1};
    }
    return false;
}

static void find_groups(const struct buf *group, struct user *user)
{
    user->groups[0] = user->gid;
    user->group_count = 1;
    struct slice f[FIELDS_MAX];
    size_t at = 0;
    for (int count; (count = next_line(group, &at, f)) >= 0;) {
        unsigned gid;
        if (count != 4 || !parse_id(f[2], &gid) || gid == user->gid ||
            !is_member(f[3], slice_of(user->name)))
            continue;
        if (user->group_count == USER_GROUPS_MAX)
            return;
        user->groups[user->group_count++] = gid;
    }
}

int users_find(const char *etc, const char *who, struct user *ret_user, struct error *err)
{
    _cleanup_buf_ struct buf passwd = BUF_INIT(FILE_BYTES_MAX);
    _cleanup_buf_ struct buf group = BUF_INIT(FILE_BYTES_MAX);
    char path[USER_PATH_MAX];
    struct user user = {0};

    snprintf(path, sizeof(path), "%s/passwd", etc);
    read_file(path, &passwd);
    if (!find_passwd(&passwd, who, &user))
        return error_set(err, ERROR_INVALID_ARGUMENT, "user %s: there is no such user", who);
    snprintf(path, sizeof(path), "%s/group", etc);
    read_file(path, &group);
    find_groups(&group, &user);
    *ret_user = user;
    return 0;
}

static void look_at(const char *etc, const char *name, struct stat *ret_stat)
{
    char path[USER_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", etc, name);
    if (stat(path, ret_stat) < 0)
        *ret_stat = (struct stat){0};
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int users_find_again(const char *etc, const char *who, struct user_memo *memo,
                     struct user *ret_user, struct error *err)
{
    struct stat passwd, group;
    look_at(etc, "passwd", &passwd);
    look_at(etc, "group", &group);
    if (memo->used && strcmp(memo->who, who) == 0 && is_same(&memo->passwd, &passwd) &&
        is_same(&memo->group, &group)) {
        *ret_user = memo->user;
        return 0;
    }
    memo->used = false;
    if (users_find(etc, who, &memo->user, err) < 0)
        return -1;
    /* What was looked at first: a file that changed meanwhile is found to be another one next time.
     */
    memo->used = strlen(who) < sizeof(memo->who);
    snprintf(memo->who, sizeof(memo->who), "%s", who);
    memo->passwd = passwd;
    memo->group = group;
    *ret_user = memo->user;
    return 0;
}

static void look_up(const char *file, unsigned id, char name[USER_NAME_MAX + 1])
{
    _cleanup_buf_ struct buf content = BUF_INIT(FILE_BYTES_MAX);
    read_file(file, &content);
    struct slice f[FIELDS_MAX];
    size_t at = 0;
    for (int count; (count = next_line(&content, &at, f)) >= 0;) {
        unsigned found; /* the number is the third field in both files */
        if (count < 4 || !parse_id(f[2], &found) || found != id || f[0].len == 0 ||
            f[0].len > USER_NAME_MAX || memchr(f[0].data, '\0', f[0].len) != NULL)
            continue;
        take_text(name, USER_NAME_MAX + 1, f[0], "");
        return;
    }
    snprintf(name, USER_NAME_MAX + 1, "%u", id);
}

const char *id_names_get(struct id_names *names, unsigned id)
{
    for (unsigned i = 0; i < ID_NAMES_KEPT; i++)
        if (names->kept[i].used && names->kept[i].id == id)
            return names->kept[i].name;
    struct id_name *slot = &names->kept[names->next++ % ID_NAMES_KEPT];
    slot->used = true;
    slot->id = id;
    look_up(names->file, id, slot->name);
    return slot->name;
}
