/* SPDX-License-Identifier: Apache-2.0 */

/* Rules for Landlock. The constants are ours: headers of older systems lack the newer ones. */

#include "confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* All of linux/landlock.h, with the version that brought them. */
enum file_access {
    ACCESS_EXECUTE = 1 << 0,
    ACCESS_WRITE_FILE = 1 << 1,
    ACCESS_READ_FILE = 1 << 2,
    ACCESS_READ_DIR = 1 << 3,
    ACCESS_REMOVE_DIR = 1 << 4,
    ACCESS_REMOVE_FILE = 1 << 5,
    ACCESS_MAKE_CHAR = 1 << 6,
    ACCESS_MAKE_DIR = 1 << 7,
    ACCESS_MAKE_REG = 1 << 8,
    ACCESS_MAKE_SOCK = 1 << 9,
    ACCESS_MAKE_FIFO = 1 << 10,
    ACCESS_MAKE_BLOCK = 1 << 11,
    ACCESS_MAKE_SYM = 1 << 12,
    ACCESS_REFER = 1 << 13,     /* 2 */
    ACCESS_TRUNCATE = 1 << 14,  /* 3 */
    ACCESS_IOCTL_DEV = 1 << 15, /* 5 */
    ACCESS_OF_FILES =
        ACCESS_EXECUTE | ACCESS_WRITE_FILE | ACCESS_READ_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV,
};

enum {
    CREATE_VERSION = 1 << 0,
    RULE_PATH_BENEATH = 1,
    ABI_TRUNCATE = 3,
    ABI_TCP = 4,
    ABI_IOCTL_DEV = 5,
    ABI_SCOPES = 6,
};

struct ruleset_attr {
    uint64_t files, tcp, scoped;
};

struct path_attr {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

static const struct {
    enum landlock_rights right;
    uint64_t access;
} right_rows[] = {
    {LANDLOCK_READ, ACCESS_READ_FILE | ACCESS_READ_DIR},
    {LANDLOCK_WRITE, ACCESS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV},
    {LANDLOCK_MANAGE, ACCESS_REMOVE_DIR | ACCESS_REMOVE_FILE | ACCESS_MAKE_DIR | ACCESS_MAKE_REG |
                          ACCESS_MAKE_SOCK | ACCESS_MAKE_SYM | ACCESS_REFER},
    {LANDLOCK_EXECUTE, ACCESS_EXECUTE | ACCESS_READ_FILE | ACCESS_READ_DIR},
};

int landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    return abi < 0 ? 0 : (int)abi;
}

/* Every right that the kernel knows is refused unless a rule allows it. */
static struct ruleset_attr handled(int abi, unsigned refusals)
{
    uint64_t files = ACCESS_REFER | (ACCESS_REFER - 1);
    struct ruleset_attr attr = {0};
    if (abi >= ABI_TRUNCATE)
        files |= ACCESS_TRUNCATE;
    if (abi >= ABI_IOCTL_DEV)
        files |= ACCESS_IOCTL_DEV;
    attr.files = files;
    if (abi >= ABI_TCP)
        attr.tcp = refusals & (LANDLOCK_NO_TCP_BIND | LANDLOCK_NO_TCP_CONNECT);
    if (abi >= ABI_SCOPES)
        attr.scoped = refusals >> 2 & 3;
    return attr;
}

static int add_rule(int ruleset, const struct landlock_rule *rule, uint64_t known,
                    struct error *err)
{
    _cleanup_fd_ int opened = rule->path == NULL ? -1 : open(rule->path, O_PATH | O_CLOEXEC);
    struct path_attr attr = {.parent_fd = rule->path == NULL ? rule->fd : opened};
    struct stat st;
    if (attr.parent_fd < 0)
        return 0; /* not on this machine, or out of reach anyway */
    for (size_t i = 0; i < ARRAY_LEN(right_rows); i++)
        if (rule->rights & right_rows[i].right)
            attr.allowed |= right_rows[i].access;
    attr.allowed &= known;
    if (fstat(attr.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
        attr.allowed &= ACCESS_OF_FILES;
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0)
        return error_sys(err, "a Landlock rule for %s", rule->path == NULL ? "a file" : rule->path);
    return 0;
}

int landlock_prepare(const struct landlock_rule *rules, size_t count, unsigned refusals,
                     int *ret_fd, struct error *err)
{
    int abi = landlock_abi();
    if (abi < LANDLOCK_ABI_MIN) {
        *ret_fd = -1;
        return 0;
    }
    struct ruleset_attr attr = handled(abi, refusals);
    _cleanup_fd_ int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return error_sys(err, "making rules for Landlock");
    for (size_t i = 0; i < count; i++)
        if (add_rule(ruleset, &rules[i], attr.files, err) < 0)
            return -1;
    *ret_fd = steal_fd(&ruleset);
    return 0;
}

int landlock_enforce(int fd)
{
    return fd >= 0 && syscall(SYS_landlock_restrict_self, fd, 0) < 0 ? errno : 0;
}
