/* SPDX-License-Identifier: Apache-2.0 */

/* What a crash, or a git that cannot do its work, leaves of a history. */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "history_place.h"
#include "sandbox/history_pack.h"

/* One that still works in a repository, whoever has started it; nobody else. */
static void orphans(struct place *p)
{
    struct fake fake = {0};
    struct error err;
    struct repository r;
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    open_repository(p, "box", &r);
    assert_int_equal(git_end_orphans(p->fd), 0);
    static const char *const argv[] = {"cat-file", "--batch", NULL};
    struct git git = {0};
    assert_int_equal(git_start(&p->git, r.fd, argv, &git, &err), 0);
    /* git_start() returns when the program is executed, a moment before the process has its name.
     */
    unsigned ended = 0;
    for (int i = 0; i < 10000 && ended == 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = i == 0 ? 0 : 1000000}, NULL);
        ended = git_end_orphans(p->fd);
    }
    assert_int_equal(ended, 1);
    assert_int_equal(git_finish(&git, &err), -1);
    assert_non_null(strstr(err.message, "signal 9"));
    git_end(&git);
    repository_close(&r);
    assert_int_equal(git_end_orphans(p->fd), 0);
}

static void tear_packs(struct place *p)
{
    int packs = openat(p->fd, "box/repository/objects/pack", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(packs);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strstr(entry->d_name, ".pack") != NULL) {
            assert_int_equal(fchmodat(packs, entry->d_name, 0600, 0), 0);
            close(openat(packs, entry->d_name, O_WRONLY | O_TRUNC | O_CLOEXEC));
        }
    closedir(dir);
}

/* Locks and half files of a git that was killed, a ref that was never written, a torn pack. */
static void torn(struct place *p)
{
    struct fake fake = {0};
    struct error err;
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    static const char *const left[] = {"box/repository/refs/heads/main.lock",
                                       "box/repository/fast_import_crash_12",
                                       "box/repository/objects/pack/tmp_pack_abc",
                                       "box/repository/objects/pack/.tmp-1-pack-abc.pack"};
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        close(openat(p->fd, left[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    fake_put(&fake, "/workspace/two", FILE_REGULAR, 0644, "2\n");
    assert_true(commit(p, &fake, "exec_00000002"));
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        assert_int_equal(faccessat(p->fd, left[i], F_OK, 0), -1);

    int fd = openat(p->fd, "box/repository/refs/heads/main", O_WRONLY | O_TRUNC | O_CLOEXEC);
    close(fd);
    struct repository r;
    open_repository(p, "box", &r);
    assert_string_equal(r.head, "");
    assert_int_equal(repository_check(&r, &err), 0);
    assert_int_equal(strlen(r.head), GIT_NAME_LEN);
    repository_close(&r);
    assert_int_equal(log_of(p, 10, 0).count, 3);

    tear_packs(p);
    open_repository(p, "box", &r);
    assert_int_equal(repository_check(&r, &err), 1);
    repository_close(&r);
    assert_true(commit(p, &fake, "exec_00000003"));
    assert_int_equal(log_of(p, 10, 0).count, 2);
    char name[GIT_NAME_SIZE];
    open_repository(p, "box", &r);
    assert_int_equal(repository_resolve(&r, "exec_00000003", name, &err), 0);
    assert_int_equal(repository_resolve(&r, "exec_00000002", name, &err), -1);
    assert_int_equal(err.code, ERROR_EXECUTION_NOT_FOUND);
    repository_close(&r);
}

/* In the place of git, from now on; NULL: none. */
static void bad_git(struct place *p, const char *script)
{
    unlinkat(p->fd, "git", 0);
    snprintf(p->git.path, sizeof(p->git.path), "%s/git", p->path);
    if (script == NULL)
        return;
    int fd = openat(p->fd, "git", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_true(dprintf(fd, "#!/bin/sh\n%s\n", script) > 0);
    close(fd);
}

static const char *const scripts[] = {
    NULL,
    "kill -9 $$",
    /* As the loader does, while a package is being replaced. */
    "echo 'git: error while loading shared libraries: libz.so.1: file too short' >&2; exit 127",
    "echo \"git: libc.so.6: version \\`GLIBC_2.38' not found (required by git)\" >&2; exit 1",
    "exit 126",
};

/* A git that cannot be started, or is killed, says nothing about the repository. */
static void no_git(struct place *p)
{
    struct fake fake = {0};
    struct repository r;
    struct error err = {0};
    char good[sizeof(p->git.path)];
    memcpy(good, p->git.path, sizeof(good));
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
        for (int empty = 0; empty < 2; empty++) {
            open_repository(p, "box", &r);
            r.head[0] = empty ? '\0' : r.head[0]; /* as with a ref that was never written */
            bad_git(p, scripts[i]);
            assert_int_equal(repository_check(&r, &err), -1);
            assert_int_equal(err.code, ERROR_UNAVAILABLE);
            assert_int_equal(repository_check(&r, NULL), -1);
            memcpy(p->git.path, good, sizeof(good));
            assert_int_equal(repository_check(&r, &err), 0);
            repository_close(&r);
        }
    assert_int_equal(unlinkat(p->fd, "box/repository/refs/heads/main", 0), 0);
    open_repository(p, "box", &r);
    assert_int_equal(repository_check(&r, &err), 0);
    repository_close(&r);
    assert_int_equal(log_of(p, 10, 0).count, 2);
}

static int packs_in(struct place *p, const char *repository)
{
    int fd = openat(p->fd, repository, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int count = fd < 0 ? -1 : (int)packs_count(fd, NULL);
    if (fd >= 0)
        close(fd);
    return count;
}

/* What was set aside may be all that is left of a history: nothing that is less takes its place. */
static void set_aside(struct place *p)
{
    struct fake fake = {0};
    struct repository r;
    struct error err = {0};
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    fake_put(&fake, "/workspace/two", FILE_REGULAR, 0644, "2\n");
    assert_true(commit(p, &fake, "exec_00000002"));
    tear_packs(p);
    open_repository(p, "box", &r);
    assert_int_equal(repository_check(&r, &err), 1);
    assert_int_equal(packs_in(p, "box/repository.torn"), 2);
    /* The disk was full, or somebody was killed, before there was a commit in the next one. */
    assert_int_equal(repository_make(&r, &err), 0);
    assert_int_equal(repository_check(&r, &err), 0);
    repository_close(&r);
    for (int i = 0; i < 2; i++) {
        open_repository(p, "box", &r);
        assert_int_equal(repository_check(&r, &err), 0);
        assert_string_equal(r.head, "");
        repository_close(&r);
        assert_int_equal(packs_in(p, "box/repository.torn"), 2);
    }
    /* A branch that leads nowhere, and nothing else: nothing that anybody would look at. */
    int fd = openat(p->fd, "box/repository/refs/heads/main", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(dprintf(fd, "%040d\n", 1), GIT_NAME_SIZE);
    close(fd);
    open_repository(p, "box", &r);
    assert_int_equal(repository_check(&r, &err), 1);
    repository_close(&r);
    assert_int_equal(packs_in(p, "box/repository.torn"), 2);
    assert_int_equal(packs_in(p, "box/repository"), -1);
    /* A history of its own is more than that. */
    assert_true(commit(p, &fake, "exec_00000003"));
    tear_packs(p);
    open_repository(p, "box", &r);
    assert_int_equal(repository_check(&r, &err), 1);
    repository_close(&r);
    assert_int_equal(packs_in(p, "box/repository.torn"), 1);
}

TEST(orphans)
TEST(torn)
TEST(no_git)
TEST(set_aside)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orphans),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_no_git),
        cmocka_unit_test(test_set_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
