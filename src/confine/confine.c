/* SPDX-License-Identifier: Apache-2.0 */

/* Who may do what with which files. Everything that is not in a table is refused. */

#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/layout.h"
#include "confine/filter.h"
#include "confine/landlock.h"
#include "confine/system_paths.h"

enum { RULES_MAX = 64 };

#ifdef CELLA_SANITIZED
static const char sanitized[] = "; a build with sanitizers, which have more system calls";
#else
static const char sanitized[] = "";
#endif

static const struct landlock_rule common[] = {
    {"/proc", -1, LANDLOCK_READ},
    {"/proc/self/exe", -1, LANDLOCK_READ},
    {"/dev/null", -1, LANDLOCK_READ | LANDLOCK_WRITE},
    {"/dev/zero", -1, LANDLOCK_READ | LANDLOCK_WRITE},
    {"/dev/full", -1, LANDLOCK_READ | LANDLOCK_WRITE},
    {"/dev/random", -1, LANDLOCK_READ},
    {"/dev/urandom", -1, LANDLOCK_READ},
};

/* git is several programs, started by one another; and the kernel starts a program by its loader.
 */
static const struct landlock_rule git_programs[] = {
    {"/usr/bin/git", -1, LANDLOCK_EXECUTE},
    {"/usr/local/bin/git", -1, LANDLOCK_EXECUTE},
    {"/bin/git", -1, LANDLOCK_EXECUTE},
    {"/usr/lib/git-core", -1, LANDLOCK_EXECUTE},
    {"/usr/libexec/git-core", -1, LANDLOCK_EXECUTE},
    {"/usr/local/libexec/git-core", -1, LANDLOCK_EXECUTE},
    {"/lib64/ld-linux-x86-64.so.2", -1, LANDLOCK_EXECUTE},
    {"/lib/ld-linux-aarch64.so.1", -1, LANDLOCK_EXECUTE},
    {"/lib/ld-musl-x86_64.so.1", -1, LANDLOCK_EXECUTE},
    {"/lib/ld-musl-aarch64.so.1", -1, LANDLOCK_EXECUTE},
};

struct rules {
    struct landlock_rule list[RULES_MAX];
    size_t count;
};

static void add(struct rules *rules, const struct landlock_rule *rows, size_t count)
{
    for (size_t i = 0; i < count && rules->count < RULES_MAX; i++)
        rules->list[rules->count++] = rows[i];
}

static void begin(struct rules *rules)
{
    rules->count = 0;
    add(rules, common, ARRAY_LEN(common));
    for (size_t i = 0; i < ARRAY_LEN(system_paths); i++)
        add(rules, &(struct landlock_rule){system_paths[i], -1, LANDLOCK_READ}, 1);
}

_Static_assert(ARRAY_LEN(common) + ARRAY_LEN(system_paths) + ARRAY_LEN(git_programs) + 6 <=
                   RULES_MAX,
               "struct rules has room for every table");

static int confine_self(enum filter_name filter, const struct rules *rules, unsigned refusals,
                        struct error *err)
{
    _cleanup_fd_ int fd = -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return error_sys(err, "setting no_new_privs");
    if (landlock_prepare(rules->list, rules->count, refusals, &fd, err) < 0)
        return -1;
    errno = landlock_enforce(fd);
    if (errno != 0)
        return error_sys(err, "putting Landlock into force");
    errno = filter_load_server(filter);
    return errno == 0 ? 0 : error_sys(err, "loading the system call filter");
}

void confine_describe(char out[CONFINE_REPORT_MAX])
{
    int abi = landlock_abi();
    if (abi >= LANDLOCK_ABI_MIN)
        snprintf(out, CONFINE_REPORT_MAX, "a system call filter and Landlock (version %d)%s", abi,
                 sanitized);
    else
        snprintf(out, CONFINE_REPORT_MAX, "a system call filter; the kernel has no Landlock%s",
                 sanitized);
}

static int open_part(int data_fd, const char *name)
{
    return openat(data_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int confine_cellad(int data_fd, struct error *err)
{
    _cleanup_fd_ int db = open_part(data_fd, LAYOUT_DB_DIR);
    _cleanup_fd_ int history = open_part(data_fd, LAYOUT_HISTORY);
    _cleanup_fd_ int audit = open_part(data_fd, LAYOUT_AUDIT);
    const struct landlock_rule own[] = {
        {NULL, data_fd, LANDLOCK_READ},
        {"/proc", -1, LANDLOCK_READ | LANDLOCK_WRITE}, /* oom_score_adj of its git */
        {NULL, db, LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_MANAGE},
        {NULL, history, LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_MANAGE},
        {NULL, audit, LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_MANAGE},
        {"/tmp", -1, LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_MANAGE},
    };
    struct rules rules;
    begin(&rules);
    add(&rules, own, ARRAY_LEN(own));
    add(&rules, git_programs, ARRAY_LEN(git_programs));
    /* It connects anywhere, opens published ports, talks to programs in sandboxes by abstract
     * names, and ends what an earlier cellad's git still does. */
    return confine_self(FILTER_CELLAD, &rules, 0, err);
}

int confine_egress(const char *ca_file, struct error *err)
{
    struct rules rules;
    begin(&rules);
    if (ca_file != NULL)
        add(&rules, &(struct landlock_rule){ca_file, -1, LANDLOCK_READ}, 1);
    /* The warden hands over what it listens at. */
    return confine_self(FILTER_EGRESS, &rules,
                        LANDLOCK_NO_TCP_BIND | LANDLOCK_NO_ABSTRACT_SOCKETS | LANDLOCK_NO_SIGNALS,
                        err);
}

int confine_git_prepare(const char *program, int repository_fd, int *ret_rules, struct error *err)
{
    const struct landlock_rule own[] = {
        {program, -1, LANDLOCK_EXECUTE},
        {NULL, repository_fd, LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_MANAGE},
    };
    struct rules rules;
    begin(&rules);
    add(&rules, own, ARRAY_LEN(own));
    add(&rules, git_programs, ARRAY_LEN(git_programs));
    return landlock_prepare(rules.list, rules.count,
                            LANDLOCK_NO_TCP_BIND | LANDLOCK_NO_TCP_CONNECT |
                                LANDLOCK_NO_ABSTRACT_SOCKETS | LANDLOCK_NO_SIGNALS,
                            ret_rules, err);
}

int confine_git(int rules)
{
    int failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? errno : landlock_enforce(rules);
    return failed != 0 ? failed : filter_load_server(FILTER_GIT);
}
