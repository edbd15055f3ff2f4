/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The repository half of histories, with a real git and files that only a test has: commits of what
 * changed, the log, diffs, states of commits, executions.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "history_place.h"
#include "sandbox/history_pack.h"
#include "sandbox/history_rules.h"

/* ---- tests ---- */

/* What the seed shows, to the letter. */
static void seed(struct place *p)
{
    struct fake fake = {0};
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_7683de5a"));
    fake_put(&fake, "/workspace/index.js", FILE_REGULAR, 0644,
             "console.log(\"Version 2\");\nconsole.log(\"New feature added!\");");
    assert_true(commit(p, &fake, "exec_8794fe6b"));
    struct history_page page = log_of(p, 100, 0);
    assert_int_equal(page.count, 3);
    assert_false(page.more);
    assert_string_equal(page.commits[0].id, "exec_8794fe6b");
    assert_string_equal(page.commits[1].id, "exec_7683de5a");
    assert_string_equal(page.commits[2].id, "unknown");
    assert_string_equal(page.commits[0].message, "Update files for sandbox execution");
    assert_string_equal(page.commits[2].message, "Initial commit");
    assert_int_equal(page.commits[0].file_count, 1);
    assert_slice(page.commits[0].files[0], "index.js");
    assert_int_equal(page.commits[2].file_count, 1);
    assert_slice(page.commits[2].files[0], "README.md");
    struct history_diff diff = diff_of(p, "exec_7683de5a", "exec_8794fe6b");
    assert_int_equal(diff.count, 1);
    const char *text = part_of(p, &diff, "index.js");
    assert_ptr_equal(strstr(text, "diff --git a/index.js b/index.js\nindex "), text);
    assert_non_null(strstr(text, " 100644\n--- a/index.js\n+++ b/index.js\n@@ -1 +1,2 @@\n"
                                 "-console.log(\"Version 1\");\n\\ No newline at end of file\n"
                                 "+console.log(\"Version 2\");\n"
                                 "+console.log(\"New feature added!\");\n"));
    page = log_of(p, 1, 1);
    assert_int_equal(page.count, 1);
    assert_true(page.more);
    assert_string_equal(page.commits[0].id, "exec_7683de5a");
}

/* Nothing changed, or only its times: no commit, but the id counts. */
static void nothing(struct place *p)
{
    struct fake fake = {0};
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    size_t reads = fake.reads;
    assert_false(commit(p, &fake, "exec_00000002"));
    assert_int_equal(fake.reads, reads); /* it was not even read */
    fake_put(&fake, "/workspace/index.js", FILE_REGULAR, 0644, "console.log(\"Version 1\");");
    assert_false(commit(p, &fake, "exec_00000003"));
    assert_int_equal(fake.reads, reads + 1);
    fake_put(&fake, "/workspace/index.js", FILE_REGULAR, 0644, "other\n");
    assert_true(commit(p, &fake, "exec_00000004"));
    assert_int_equal(diff_of(p, "exec_00000001", "exec_00000003").count, 0);
    assert_int_equal(diff_of(p, "exec_00000003", "exec_00000004").count, 1);
    assert_int_equal(log_of(p, 100, 0).count, 3);
}

/* A manifest that is lost, or torn: compared by content, with the same result. */
static void lost_manifest(struct place *p)
{
    struct fake fake = {0};
    seed_files(&fake);
    fake_put(&fake, "/home/user", FILE_DIRECTORY, 0700, NULL)->uid = 1000;
    fake_put(&fake, "/home/user/notes", FILE_REGULAR, 0600, "x\n")->uid = 1000;
    assert_true(commit(p, &fake, "exec_00000001"));
    assert_int_equal(unlinkat(p->fd, "box/manifest", 0), 0);
    assert_false(commit(p, &fake, "exec_00000002"));
    int fd = openat(p->fd, "box/manifest", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, 150), 0);
    close(fd);
    assert_false(commit(p, &fake, "exec_00000003"));
    fake_remove(&fake, "/home/user/notes");
    assert_int_equal(unlinkat(p->fd, "box/manifest", 0), 0);
    assert_true(commit(p, &fake, "exec_00000004"));
    struct history_page page = log_of(p, 100, 0);
    assert_int_equal(page.count, 3);
    assert_slice(page.commits[0].files[0], "/home/user/notes");
}

/* Names, modes, owners, links, empty directories: all of it comes back from a commit. */
static void everything(struct place *p)
{
    static const char odd[] = "/workspace/a \"b\"\n\\ %\x01\xff";
    struct fake fake = {0};
    seed_files(&fake);
    fake_put(&fake, odd, FILE_REGULAR, 04711, "odd\n")->uid = 12345;
    fake_put(&fake, "/workspace/link", FILE_SYMLINK, 0777, "../etc/passwd");
    fake_put(&fake, "/workspace/empty", FILE_DIRECTORY, 01777, NULL);
    fake_put(&fake, "/workspace/sub", FILE_DIRECTORY, 0755, NULL)->uid = 5;
    fake_put(&fake, "/workspace/sub/mine", FILE_REGULAR, 0644, "5\n")->uid = 5;
    fake_put(&fake, "/workspace/nul", FILE_REGULAR, 0644, "a\0b\n")->len = 4;
    fake_put(&fake, "/workspace/.git", FILE_REGULAR, 0644, "gitdir: elsewhere\n");
    fake_put(&fake, "/workspace/-f", FILE_REGULAR, 0644, "no option\n");
    assert_true(commit(p, &fake, "exec_00000001"));
    struct repository r;
    struct error err;
    struct manifest m;
    history_manifest_init(&m);
    open_repository(p, "box", &r);
    if (repository_tree(&r, r.head, &m, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(m.count, fake.count - 1); /* but for .git */
    for (size_t i = 0; i < fake.count; i++) {
        const struct fake_file *f = &fake.files[i];
        const struct tracked *item = history_manifest_find(&m, f->path + 1);
        if (strcmp(f->path, "/workspace/.git") == 0) {
            assert_null(item);
            continue;
        }
        assert_non_null(item);
        assert_int_equal(item->type, f->type);
        assert_int_equal(item->uid, f->uid);
        if (f->type != FILE_SYMLINK)
            assert_int_equal(item->mode, f->mode);
    }
    history_manifest_release(&m);
    repository_close(&r);
    struct history_diff diff = diff_of(p, "unknown", "exec_00000001");
    assert_non_null(strstr(part_of(p, &diff, "nul"), "Binary files /dev/null and b/nul differ"));
    assert_non_null(part_of(p, &diff, odd + strlen("/workspace/")));
    /* A mode alone, and an owner alone: what git does not see is in the log all the same. */
    fake_put(&fake, "/workspace/sub/mine", FILE_REGULAR, 0600, "5\n")->uid = 5;
    assert_true(commit(p, &fake, "exec_00000002"));
    struct history_page page = log_of(p, 100, 0);
    assert_int_equal(page.commits[0].file_count, 1);
    assert_slice(page.commits[0].files[0], "sub/mine");
    fake_remove(&fake, "/workspace/empty");
    assert_true(commit(p, &fake, "exec_00000003"));
    assert_slice(log_of(p, 100, 0).commits[0].files[0], "empty");
}

/* Links that some versions of git refuse are left out by all of them; files of these names are not.
 */
static void submodules(struct place *p)
{
    struct fake fake = {0};
    static const char *const links[] = {"/workspace/.gitmodules", "/workspace/sub/.GitModules",
                                        "/workspace/.gitmodules2/.gitmodules/link"};
    static const char *const kept[] = {"/workspace/a/.gitmodules", "/workspace/gitmodules",
                                       "/workspace/.gitmodules2/link", "/workspace/.gitmodule"};
    seed_files(&fake);
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        fake_put(&fake, links[i], FILE_SYMLINK, 0777, "elsewhere");
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        fake_put(&fake, kept[i], i == 0 ? FILE_REGULAR : FILE_SYMLINK, 0644, "elsewhere");
    assert_true(commit(p, &fake, "exec_00000001"));
    struct history_diff diff = diff_of(p, "unknown", "exec_00000001");
    assert_int_equal(diff.count, 1 + ARRAY_LEN(kept));
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        assert_non_null(part_of(p, &diff, kept[i] + strlen("/workspace/")));
    assert_false(commit(p, &fake, "exec_00000002"));
}

/* Renames as git shows them, a file that becomes a link, one that becomes a directory. */
static void turns(struct place *p)
{
    struct fake fake = {0};
    seed_files(&fake);
    fake_put(&fake, "/workspace/old", FILE_REGULAR, 0644, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    fake_put(&fake, "/workspace/thing", FILE_REGULAR, 0644, "a thing\n");
    assert_true(commit(p, &fake, "exec_00000001"));
    fake_remove(&fake, "/workspace/old");
    fake_put(&fake, "/workspace/new", FILE_REGULAR, 0644, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    fake_put(&fake, "/workspace/thing", FILE_DIRECTORY, 0755, NULL);
    fake_put(&fake, "/workspace/thing/in", FILE_REGULAR, 0644, "inside\n");
    fake_put(&fake, "/workspace/index.js", FILE_SYMLINK, 0777, "new");
    assert_true(commit(p, &fake, "exec_00000002"));
    struct history_diff diff = diff_of(p, "exec_00000001", "exec_00000002");
    assert_non_null(strstr(part_of(p, &diff, "new"), "rename from old\nrename to new\n"));
    assert_non_null(strstr(part_of(p, &diff, "index.js"), "new file mode 120000"));
    assert_non_null(strstr(part_of(p, &diff, "thing/in"), "+inside"));
    diff = diff_of(p, "exec_00000002", "exec_00000001");
    assert_non_null(strstr(part_of(p, &diff, "old"), "rename from new\n"));
}

/* What the image brought is in the first commit, and no change. */
static void image_files(struct place *p)
{
    struct fake fake = {0};
    fake_put(&fake, "/workspace", FILE_DIRECTORY, 0755, NULL);
    fake_put(&fake, "/home/user", FILE_DIRECTORY, 0755, NULL)->stamp = 10;
    fake_put(&fake, "/home/user/.profile", FILE_REGULAR, 0644, "old\n")->stamp = 10;
    assert_false(commit(p, &fake, "exec_00000001"));
    fake_put(&fake, "/home/user/.profile", FILE_REGULAR, 0644, "new\n")->stamp = 5000;
    assert_true(commit(p, &fake, "exec_00000002"));
    struct history_page page = log_of(p, 100, 0);
    assert_int_equal(page.count, 2);
    assert_int_equal(page.commits[1].file_count, 1);
    assert_slice(page.commits[1].files[0], "README.md");
    struct history_diff diff = diff_of(p, "exec_00000001", "exec_00000002");
    assert_non_null(strstr(part_of(p, &diff, "/home/user/.profile"), "-old\n+new\n"));
}

/* Ids: both forms, the first, what is none, and one that nobody has. */
static void ids(struct place *p)
{
    struct fake fake = {0};
    struct error err;
    char id[EXECUTION_ID_SIZE], name[GIT_NAME_SIZE], first[GIT_NAME_SIZE];
    assert_int_equal(execution_normalize("python_run_0000000a", id, &err), 0);
    assert_string_equal(id, "exec_0000000a");
    static const char *const wrong[] = {"",         "exec_",          "exec_0000000g", "main",
                                        "--output", "exec_0000000aa", "HEAD",          "unknown "};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(execution_normalize(wrong[i], id, &err), -1);
        assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
    }
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    assert_int_equal(remember(p, "exec_00000009", EXECUTION_PENDING, 1), 0);
    struct repository r;
    open_repository(p, "box", &r);
    assert_int_equal(repository_resolve(&r, "unknown", first, &err), 0);
    assert_int_equal(repository_resolve(&r, "exec_00000009", name, &err), 0);
    assert_string_equal(name, r.head); /* the first commit since 1970 but the initial one */
    assert_string_not_equal(name, first);
    /* A line from the journal may come again, behind a newer one. */
    assert_int_equal(remember(p, "exec_00000009", r.head, 3), 0);
    assert_int_equal(remember(p, "exec_00000009", EXECUTION_PENDING, 1), 0);
    assert_int_equal(remember(p, "exec_00000009", EXECUTION_PENDING, 9), 0); /* a clock set back */
    assert_int_equal(repository_resolve(&r, "exec_00000009", name, &err), 0);
    assert_string_equal(name, r.head);
    assert_int_equal(unlinkat(p->fd, "box/executions", 0), 0);
    assert_int_equal(repository_resolve(&r, "exec_00000001", name, &err), 0);
    assert_string_equal(name, r.head); /* it is named in its commit, too */
    assert_int_equal(repository_resolve(&r, "exec_0000000f", name, &err), -1);
    assert_int_equal(err.code, ERROR_EXECUTION_NOT_FOUND);
    repository_close(&r);
}

/* What a sandbox calls its files is in messages, too. */
static void named_like_an_id(struct place *p)
{
    struct fake fake = {0};
    struct error err;
    struct repository r;
    char name[GIT_NAME_SIZE], first[GIT_NAME_SIZE];
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    open_repository(p, "box", &r);
    memcpy(first, r.head, sizeof(first));
    repository_close(&r);
    fake_put(&fake, "/workspace/Execution-Id: exec_00000001", FILE_DIRECTORY, 0755, NULL);
    fake_put(&fake, "/workspace/\nExecution-Id: exec_00000001", FILE_DIRECTORY, 0755, NULL);
    assert_true(commit(p, &fake, "exec_00000002"));
    assert_int_equal(unlinkat(p->fd, "box/executions", 0), 0);
    open_repository(p, "box", &r);
    assert_int_equal(repository_resolve(&r, "exec_00000001", name, &err), 0);
    assert_string_equal(name, first);
    assert_int_equal(repository_resolve(&r, "exec_00000002", name, &err), 0);
    assert_string_equal(name, r.head);
    repository_close(&r);
    assert_string_equal(log_of(p, 1, 0).commits[0].id, "exec_00000002");
}

/* A power cut has left half a line; and whether the end of the last one is to come. */
static void half_a_line(struct place *p)
{
    struct fake fake = {0};
    struct error err;
    char id[EXECUTION_ID_SIZE], name[GIT_NAME_SIZE];
    struct repository r;
    seed_files(&fake);
    assert_true(commit(p, &fake, "exec_00000001"));
    open_repository(p, "box", &r);
    executions_pending(&r, id);
    assert_string_equal(id, "");
    int fd = openat(p->fd, "box/executions", O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "exec_00000002 12", 16), 16);
    close(fd);
    executions_pending(&r, id);
    assert_string_equal(id, "");
    assert_int_equal(remember(p, "exec_00000003", r.head, 1), 0);
    assert_int_equal(repository_resolve(&r, "exec_00000003", name, &err), 0);
    assert_string_equal(name, r.head);
    assert_int_equal(repository_resolve(&r, "exec_00000002", name, &err), -1);
    assert_int_equal(remember(p, "exec_00000004", EXECUTION_PENDING, 5), 0);
    assert_int_equal(remember(p, "exec_00000001", r.head, 1), 0); /* from the journal, again */
    executions_pending(&r, id);
    assert_string_equal(id, "exec_00000004");
    assert_int_equal(remember(p, "exec_00000004", r.head, 6), 0);
    executions_pending(&r, id);
    assert_string_equal(id, "");
    repository_close(&r);
}

/* Somebody asks before there was an execution: what is new by then is the first one's. */
static void asked_first(struct place *p)
{
    struct fake fake = {0};
    seed_files(&fake);
    fake_put(&fake, "/workspace/new", FILE_REGULAR, 0644, "new\n")->stamp = 2000000;
    assert_false(commit(p, &fake, NULL));
    assert_int_equal(log_of(p, 10, 0).count, 1);
    assert_true(commit(p, &fake, "exec_00000001"));
    struct history_page page = log_of(p, 10, 0);
    assert_int_equal(page.count, 2);
    assert_string_equal(page.commits[0].id, "exec_00000001");
    assert_false(commit(p, &fake, "exec_00000002"));
}

/* A sandbox that lists less than it sends is held to what all of it may be, too. */
static void liar(struct place *p)
{
    struct fake fake = {.lies = true};
    struct repository r;
    struct error err = {0};
    struct history_committed committed = {0};
    struct manifest m;
    const struct history_source source = {&fake, fake_list, fake_read};
    const struct history_commit_request request = {
        .execution = "exec_00000001", .message = "x", .file_max = 1000, .total_max = 30};
    seed_files(&fake); /* 25 bytes */
    fake_put(&fake, "/workspace/more", FILE_REGULAR, 0644, "123456");
    history_manifest_init(&m);
    open_repository(p, "box", &r);
    assert_int_equal(history_commit_files(&r, &source, &request, p->arena, &m, &committed, &err),
                     -1);
    assert_int_equal(err.code, ERROR_LIMIT_EXCEEDED);
    history_manifest_release(&m);
    repository_close(&r);
}

/* A page of commits has room for so many bytes of names; those that have none say so. */
static void long_names(struct place *p)
{
    enum { NAMES = 30, COMMITS = 145, LONG = 4000 };
    char *names[NAMES];
    struct fake fake = {0};
    char id[EXECUTION_ID_SIZE];
    char text[16];
    seed_files(&fake);
    for (size_t i = 0; i < NAMES; i++) {
        names[i] = arena_alloc(p->arena, LONG + 1);
        memset(names[i], 'x', LONG);
        names[i][LONG] = '\0';
        int at = snprintf(names[i], LONG, "/workspace/%02zu", i);
        names[i][at] = 'x';
        for (size_t n = 200; n < LONG; n += 200)
            names[i][n] = '/';
    }
    for (unsigned c = 1; c <= COMMITS; c++) {
        snprintf(id, sizeof(id), "exec_%08x", c);
        snprintf(text, sizeof(text), "%u\n", c);
        for (size_t i = 0; i < NAMES; i++)
            fake_put(&fake, names[i], FILE_REGULAR, 0644, text);
        assert_true(commit(p, &fake, id));
    }
    struct history_page page = log_of(p, 1000, 0);
    assert_int_equal(page.count, COMMITS + 1);
    assert_int_equal(page.commits[0].file_count, NAMES);
    assert_false(page.commits[0].files_cut);
    assert_true(page.commits[COMMITS - 1].files_cut);
    assert_string_equal(page.commits[COMMITS - 1].id, "exec_00000001");
}

/* Second ones, and packing. */
static void folders(struct place *p)
{
    struct fake fake = {0};
    struct error err;
    struct repository r;
    char id[EXECUTION_ID_SIZE];
    char text[16];
    seed_files(&fake);
    for (unsigned i = 1; i <= 9; i++) {
        snprintf(id, sizeof(id), "exec_%08x", i);
        snprintf(text, sizeof(text), "%u\n", i);
        fake_put(&fake, "/workspace/n", FILE_REGULAR, 0644, text);
        assert_true(commit(p, &fake, id));
    }
    if (history_folder_copy(&p->git, p->fd, "box", "copy", &err) < 0)
        fail_msg("%s", err.message);
    open_repository(p, "box", &r);
    assert_int_equal(repository_repack(&r, &err), 0);
    assert_true(repository_size(&r) > 0);
    assert_int_equal(repository_forget_half(&r, &err), 1);
    assert_int_equal(repository_repack(&r, &err), 0);
    repository_close(&r);
    assert_int_equal(log_of(p, 100, 0).count, 5);
    char name[GIT_NAME_SIZE];
    open_repository(p, "box", &r);
    assert_int_equal(repository_resolve(&r, "exec_00000001", name, &err), -1);
    assert_int_equal(err.code, ERROR_EXECUTION_NOT_FOUND);
    repository_close(&r);
    struct history_page page;
    open_repository(p, "copy", &r);
    assert_int_equal(repository_log(&r, 100, 0, p->arena, &page, &err), 0);
    assert_int_equal(page.count, 10);
    repository_close(&r);
    history_folder_remove(&p->git, p->fd, "box");
    assert_int_equal(faccessat(p->fd, "box", F_OK, 0), -1);
    open_repository(p, "copy", &r);
    assert_int_equal(repository_log(&r, 100, 0, p->arena, &page, &err), 0);
    assert_int_equal(page.count, 10);
    repository_close(&r);
}

/* Too much of it: said, and cut. */
static void large(struct place *p)
{
    struct fake fake = {0};
    enum { LINES = 45000 };
    char *text = malloc(LINES * 2 + 1);
    for (size_t i = 0; i < LINES; i++)
        memcpy(text + 2 * i, "x\n", 2);
    text[2 * LINES] = '\0';
    seed_files(&fake);
    fake_put(&fake, "/workspace/large", FILE_REGULAR, 0644, text);
    struct fake_file *too = fake_put(&fake, "/workspace/too-large", FILE_REGULAR, 0644, text);
    too->len = 2 * LINES;
    assert_true(commit(p, &fake, "exec_00000001"));
    struct history_diff diff = diff_of(p, "unknown", "exec_00000001");
    assert_int_equal(diff.count, 3);
    char *more = malloc(100002);
    memset(more, 'y', 100001);
    more[100001] = '\0';
    fake_put(&fake, "/workspace/too-large", FILE_REGULAR, 0644, more);
    /* It stays as it was, for it has not gone; that this is not what is there, a commit says. */
    assert_true(commit(p, &fake, "exec_00000002"));
    assert_int_equal(diff_of(p, "exec_00000001", "exec_00000002").count, 0);
    assert_int_equal(log_of(p, 1, 0).commits[0].file_count, 0);
    fake_put(&fake, "/workspace/too-large", FILE_REGULAR, 0644, more);
    assert_false(commit(p, &fake, "exec_00000012"));
    fake_put(&fake, "/workspace/other", FILE_REGULAR, 0644, "1");
    assert_true(commit(p, &fake, "exec_00000003"));
    diff = diff_of(p, "exec_00000001", "exec_00000003");
    assert_int_equal(diff.count, 1);
    fake_remove(&fake, "/workspace/too-large");
    assert_true(commit(p, &fake, "exec_00000004"));
    diff = diff_of(p, "exec_00000003", "exec_00000004");
    assert_non_null(strstr(part_of(p, &diff, "too-large"), "deleted file mode"));
    free(text);
    free(more);
}

/* Packs are made one while commits are made. One of these needs what only an old pack has, and
 * nobody has needed since its older half was forgotten. */
static void packs(struct place *p)
{
    static const char *const contents[] = {"first", "second", "third", "fourth"};
    _cleanup_packing_ struct packing packing = PACKING_INIT;
    struct fake fake = {0};
    struct repository r;
    struct error err;
    char id[] = "exec_00000000";
    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        fake_put(&fake, "/workspace/f", FILE_REGULAR, 0644, contents[i]);
        id[sizeof(id) - 2] = (char)('1' + i);
        assert_true(commit(p, &fake, id));
    }
    open_repository(p, "box", &r);
    assert_int_equal(repository_forget_half(&r, &err), 1);
    if (repository_pack(&r, &packing, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(packs_count(r.fd, NULL), 5);
    fake_put(&fake, "/workspace/f", FILE_REGULAR, 0644, "first");
    assert_true(commit(p, &fake, "exec_00000005"));
    if (repository_pack_end(&r, &packing, &err) < 0)
        fail_msg("%s", err.message);
    repository_close(&r);
    open_repository(p, "box", &r);
    assert_int_equal(packs_count(r.fd, NULL), 3); /* all, the commit's own, and what it needed */
    assert_int_equal(repository_check(&r, &err), 0);
    struct history_diff diff = diff_of(p, "exec_00000004", "exec_00000005");
    assert_non_null(strstr(part_of(p, &diff, "f"), "+first"));
    if (repository_repack(&r, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(packs_count(r.fd, NULL), 1);
    if (repository_repack(&r, &err) < 0) /* the same pack again, which must not go */
        fail_msg("%s", err.message);
    assert_int_equal(packs_count(r.fd, NULL), 1);
    repository_close(&r);
    assert_true(log_of(p, 100, 0).count >= 3);
    fake_put(&fake, "/workspace/f", FILE_REGULAR, 0644, "sixth");
    assert_true(commit(p, &fake, "exec_00000006"));
}

static struct manifest tree_of(struct place *p, const char *execution)
{
    struct repository r;
    struct error err;
    struct manifest m;
    char name[GIT_NAME_SIZE];
    history_manifest_init(&m);
    open_repository(p, "box", &r);
    if (repository_resolve(&r, execution, name, &err) < 0 ||
        repository_tree(&r, name, &m, &err) < 0)
        fail_msg("%s", err.message);
    repository_close(&r);
    return m;
}

/* One of those that a commit has as they were kept last, or not at all, though they were there. */
static void outgrown(struct place *p)
{
    struct fake fake = {0};
    char *more = malloc(100002);
    memset(more, 'y', 100001);
    more[100001] = '\0';
    seed_files(&fake);
    fake_put(&fake, "/workspace/image", FILE_REGULAR, 0644, more)->stamp = 10;
    fake_put(&fake, "/workspace/f", FILE_REGULAR, 0644, "v1");
    assert_true(commit(p, &fake, "exec_00000001"));
    fake_put(&fake, "/workspace/f", FILE_REGULAR, 0644, more);
    fake_put(&fake, "/workspace/odd\n%", FILE_REGULAR, 0644, more);
    assert_true(commit(p, &fake, "exec_00000002"));
    /* Both ways to know of it: the list of files, and the commit. */
    assert_false(commit(p, &fake, "exec_00000003"));
    assert_int_equal(unlinkat(p->fd, "box/manifest", 0), 0);
    assert_false(commit(p, &fake, "exec_00000004"));
    struct manifest first = tree_of(p, "unknown"), goal = tree_of(p, "exec_00000002");
    assert_int_equal(first.large_count, 1);
    assert_true(history_manifest_has_large(&first, "workspace/image"));
    assert_int_equal(goal.large_count, 3);
    assert_true(history_manifest_has_large(&goal, "workspace/odd\n%"));
    history_manifest_mark_large(&goal, &goal);
    assert_true(history_manifest_find(&goal, "workspace/f")->ignored);
    assert_false(history_manifest_find(&goal, "workspace/index.js")->ignored);
    /* What has its place now is not removed either, with all that is in it. */
    fake_put(&fake, "/workspace/f", FILE_DIRECTORY, 0755, NULL);
    fake_put(&fake, "/workspace/f/in", FILE_REGULAR, 0644, "in");
    assert_true(commit(p, &fake, "exec_00000005"));
    struct manifest now = tree_of(p, "exec_00000005");
    assert_false(history_manifest_has_large(&now, "workspace/f"));
    history_manifest_mark_large(&now, &goal);
    assert_true(history_manifest_find(&now, "workspace/f")->ignored);
    assert_true(history_manifest_find(&now, "workspace/f/in")->ignored);
    assert_false(history_manifest_find(&now, "workspace")->ignored);
    history_manifest_release(&first);
    history_manifest_release(&goal);
    history_manifest_release(&now);
    free(more);
}

/* One that grows too large between the two looks at it has not gone. */
static void grows(struct place *p)
{
    struct fake fake = {0};
    char *more = malloc(100002);
    memset(more, 'y', 100001);
    more[100001] = '\0';
    seed_files(&fake);
    fake_put(&fake, "/workspace/f", FILE_REGULAR, 0644, "v1");
    assert_true(commit(p, &fake, "exec_00000001"));
    fake_put(&fake, "/workspace/f", FILE_REGULAR, 0644, more);
    fake.lies = true; /* about its size, as it was listed */
    assert_true(commit(p, &fake, "exec_00000002"));
    assert_int_equal(diff_of(p, "exec_00000001", "exec_00000002").count, 0);
    struct manifest m = tree_of(p, "exec_00000002");
    assert_true(history_manifest_has_large(&m, "workspace/f"));
    assert_non_null(history_manifest_find(&m, "workspace/f"));
    history_manifest_release(&m);
    free(more);
}

/* As many files as there may be, with the usual patterns: no reason to refuse. */
static void test_many_files(void **state)
{
    enum { COUNT = 200 * 1000 };
    struct manifest m;
    struct error err;
    char path[64];
    history_manifest_init(&m);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(path, sizeof(path), "workspace/%042u", i);
        const struct tracked item = {.path = path};
        assert_int_equal(history_manifest_add(&m, &item, &err), 0);
    }
    assert_true(history_manifest_mark(&m, history_rules_usual.ignore));
    static char stars[4096];
    memset(stars, '*', sizeof(stars) - 1);
    assert_false(history_manifest_mark(&m, (struct slice){stars, sizeof(stars)}));
    history_manifest_release(&m);
}

/* Other patterns: what they leave out has not gone, and a commit says by which it was made. */
static void rules(struct place *p)
{
    static const char logs[] = ".git\0*.log";
    const struct slice no_logs = {logs, sizeof(logs)};
    struct fake fake = {0};
    seed_files(&fake);
    fake_put(&fake, "/workspace/dir", FILE_DIRECTORY, 0755, NULL);
    fake_put(&fake, "/workspace/dir/a.log", FILE_REGULAR, 0644, "log");
    assert_true(commit(p, &fake, "exec_00000001"));
    fake_remove(&fake, "/workspace/dir/a.log"); /* that is: it is not listed */
    assert_false(commit_with(p, &fake, "exec_00000002", no_logs));
    size_t reads = fake.reads;
    assert_false(commit_with(p, &fake, "exec_00000012", no_logs));
    assert_int_equal(fake.reads, reads); /* though no commit has these rules yet */
    fake_put(&fake, "/workspace/other", FILE_REGULAR, 0644, "1");
    assert_true(commit_with(p, &fake, "exec_00000003", no_logs));
    struct history_diff diff = diff_of(p, "exec_00000001", "exec_00000003");
    assert_int_equal(diff.count, 1);
    assert_slice(diff.files[0].path, "other");
    assert_int_equal(log_of(p, 1, 0).commits[0].file_count, 1);
    struct manifest m = tree_of(p, "exec_00000003");
    assert_true(slice_eq(m.ignore, no_logs));
    assert_non_null(history_manifest_find(&m, "workspace/dir/a.log"));
    assert_true(history_manifest_mark(&m, m.ignore));
    assert_true(history_manifest_find(&m, "workspace/dir/a.log")->ignored);
    assert_false(history_manifest_find(&m, "workspace/dir")->ignored);
    history_manifest_release(&m);
    reads = fake.reads;
    assert_false(commit_with(p, &fake, "exec_00000004", no_logs));
    assert_true(fake.reads == reads);               /* by what stat says, as ever */
    assert_true(commit(p, &fake, "exec_00000005")); /* the usual again: now it has gone */
    diff = diff_of(p, "exec_00000003", "exec_00000005");
    assert_int_equal(diff.count, 1);
    assert_non_null(strstr(part_of(p, &diff, "dir/a.log"), "deleted file mode"));
    m = tree_of(p, "exec_00000005");
    assert_true(slice_eq(m.ignore, history_rules_usual.ignore));
    history_manifest_release(&m);
}

TEST(seed)
TEST(nothing)
TEST(lost_manifest)
TEST(everything)
TEST(turns)
TEST(submodules)
TEST(image_files)
TEST(ids)
TEST(half_a_line)
TEST(named_like_an_id)
TEST(asked_first)
TEST(liar)
TEST(long_names)
TEST(folders)
TEST(large)
TEST(outgrown)
TEST(grows)
TEST(rules)
TEST(packs)

static void test_lines(void **state)
{
    char line[EXECUTION_LINE_SIZE + 64] = "";
    size_t len = execution_line(line, "exec_00000009", EXECUTION_PENDING, INT64_MAX);
    assert_true(execution_line_valid((struct slice){line, len}));
    len = execution_line(line, "exec_00000009", "", 0);
    assert_true(execution_line_valid((struct slice){line, len}));
    for (size_t cut = 0; cut < len; cut++)
        assert_false(execution_line_valid((struct slice){line, cut}));
    static const size_t torn[] = {3, 20, 55}; /* as a power cut leaves them */
    for (size_t i = 0; i < sizeof(torn) / sizeof(torn[0]); i++) {
        execution_line(line, "exec_00000009", "", 0);
        line[torn[i]] = '\0';
        assert_false(execution_line_valid((struct slice){line, len}));
    }
    memset(line, '0', sizeof(line));
    assert_false(execution_line_valid((struct slice){line, sizeof(line)}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seed),        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_everything),  cmocka_unit_test(test_lost_manifest),
        cmocka_unit_test(test_turns),       cmocka_unit_test(test_image_files),
        cmocka_unit_test(test_ids),         cmocka_unit_test(test_liar),
        cmocka_unit_test(test_long_names),  cmocka_unit_test(test_folders),
        cmocka_unit_test(test_large),       cmocka_unit_test(test_rules),
        cmocka_unit_test(test_packs),       cmocka_unit_test(test_half_a_line),
        cmocka_unit_test(test_asked_first), cmocka_unit_test(test_lines),
        cmocka_unit_test(test_outgrown),    cmocka_unit_test(test_grows),
        cmocka_unit_test(test_many_files),  cmocka_unit_test(test_named_like_an_id),
        cmocka_unit_test(test_submodules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
