/* SPDX-License-Identifier: Apache-2.0 */

/* How much a history tells at once. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/limits.h"
#include "history_place.h"

/* /workspace/f00000 and so on, each of so many bytes, in lines. */
struct many {
    size_t count, bytes;
    bool odd;       /* in names as long as can be, of bytes that are escaped */
    size_t folders; /* that they are in, in turns; 0: none */
    uint64_t mode;
};

enum { MANY_LINE = 64, MANY_MAX = 2 << 20, MANY_PATH = 3900 };

static void many_path(const struct many *m, size_t i, char out[MANY_PATH + 1])
{
    int len = m->folders == 0
                  ? snprintf(out, MANY_PATH, "/workspace/f%05zu", i)
                  : snprintf(out, MANY_PATH, "/workspace/%03zu/f%05zu", i % m->folders, i);
    if (!m->odd)
        return;
    memset(out + len, '\1', (size_t)(MANY_PATH - len));
    for (size_t at = 200; at < MANY_PATH - 1; at += 200)
        out[at] = '/';
    out[MANY_PATH] = '\0';
}

static struct history_entry many_entry(const struct many *m, const char *path, size_t bytes)
{
    return (struct history_entry){.path = path,
                                  .type = bytes == 0 ? FILE_DIRECTORY : FILE_REGULAR,
                                  .mode = bytes == 0     ? 0755
                                          : m->mode == 0 ? 0644
                                                         : m->mode,
                                  .size = bytes,
                                  .mtime_ns = 5000,
                                  .ctime_ns = 5000,
                                  .inode = 7};
}

static int many_list(void *ctx, history_visit *visit, void *visit_ctx, struct error *err)
{
    const struct many *m = ctx;
    char path[MANY_PATH + 1] = "/workspace";
    struct history_entry entry = many_entry(m, path, 0);
    int rc = visit(visit_ctx, &entry, err);
    for (size_t i = 0; rc == 0 && i < m->count; i++) {
        many_path(m, i, path);
        entry = many_entry(m, path, m->bytes);
        rc = visit(visit_ctx, &entry, err);
    }
    return rc;
}

static int many_read(void *ctx, const char *const *paths, size_t count, uint64_t size_max,
                     const struct history_sink *sink, void *sink_ctx, struct error *err)
{
    const struct many *m = ctx;
    char line[MANY_LINE + 64];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct history_entry entry = many_entry(m, paths[i], m->bytes);
        rc = sink->begin(sink_ctx, &entry, err);
        for (size_t at = 0; rc == 0 && at < m->bytes; at += MANY_LINE) {
            snprintf(line, sizeof(line), "%.40s %*zu\n", paths[i], MANY_LINE, at);
            size_t len = m->bytes - at < MANY_LINE ? m->bytes - at : MANY_LINE;
            line[len - 1] = '\n';
            rc = sink->data(sink_ctx, (struct slice){line, len}, err);
        }
        if (rc == 0)
            rc = sink->end(sink_ctx, false, err);
    }
    return rc;
}

static bool commit_many(struct place *p, struct many many, const char *execution)
{
    struct repository r;
    struct error err = {0};
    struct history_committed committed = {0};
    struct manifest m;
    const struct history_source source = {&many, many_list, many_read};
    const struct history_commit_request request = {.execution = execution,
                                                   .message = "x",
                                                   .file_max = MANY_MAX,
                                                   .total_max = 1 << 30,
                                                   .created_ns = 1000};
    history_manifest_init(&m);
    open_repository(p, "box", &r);
    if (history_commit_files(&r, &source, &request, p->arena, &m, &committed, &err) < 0)
        fail_msg("%s", err.message);
    history_manifest_release(&m);
    repository_close(&r);
    return committed.made;
}

static struct history_diff diff_of_many(struct place *p, struct many many)
{
    assert_true(commit_many(p, many, "exec_00000001"));
    return diff_of(p, "unknown", "exec_00000001");
}

static size_t told(const struct history_diff *diff)
{
    size_t count = 0;
    for (size_t i = 0; i < diff->count; i++)
        count += diff->files[i].text.len > 0;
    return count;
}

static void as_many_files(struct place *p)
{
    struct history_diff diff = diff_of_many(p, (struct many){HISTORY_DIFF_FILES_MAX, 20});
    assert_int_equal(diff.count, HISTORY_DIFF_FILES_MAX);
    assert_int_equal(told(&diff), HISTORY_DIFF_FILES_MAX);
    assert_false(diff.cut);
}

/* Those that are shown have their text. */
static void more_files(struct place *p)
{
    struct history_diff diff = diff_of_many(p, (struct many){HISTORY_DIFF_FILES_MAX + 100, 20});
    assert_int_equal(diff.count, HISTORY_DIFF_FILES_MAX);
    assert_int_equal(told(&diff), HISTORY_DIFF_FILES_MAX);
    assert_true(diff.cut);
    assert_non_null(strstr(part_of(p, &diff, "f00000"), "+/workspace/f00000"));
    assert_non_null(strstr(part_of(p, &diff, "f01999"), "+/workspace/f01999"));
}

static void one_large_file(struct place *p)
{
    struct history_diff diff = diff_of_many(p, (struct many){1, HISTORY_DIFF_FILE_MAX});
    assert_int_equal(diff.count, 1);
    assert_true(diff.cut && diff.files[0].cut);
    assert_in_range(diff.files[0].text.len, HISTORY_DIFF_FILE_MAX - 2 * MANY_LINE,
                    HISTORY_DIFF_FILE_MAX);
}

static void much_in_all(struct place *p)
{
    enum { EACH = 900 << 10, COUNT = 20 };
    struct history_diff diff = diff_of_many(p, (struct many){COUNT, EACH});
    size_t all = 0, whole = 0;
    for (size_t i = 0; i < diff.count; i++) {
        all += diff.files[i].text.len;
        whole += !diff.files[i].cut;
    }
    assert_int_equal(diff.count, COUNT);
    assert_true(diff.cut);
    assert_in_range(all, HISTORY_DIFF_BYTES_MAX - (64 << 10), HISTORY_DIFF_BYTES_MAX);
    assert_in_range(whole, 16, COUNT - 1);
}

/* Files whose mode alone has changed are named in the message: as many as fit. */
static void long_messages(struct place *p)
{
    struct many many = {.count = 150, .bytes = 20, .odd = true};
    assert_true(commit_many(p, many, "exec_00000001"));
    many.mode = 0600;
    assert_true(commit_many(p, many, "exec_00000002"));
    struct history_page page = log_of(p, 10, 0);
    assert_int_equal(page.count, 3);
    assert_string_equal(page.commits[0].id, "exec_00000002");
    assert_in_range(page.commits[0].file_count, 30, many.count - 1);
    assert_false(commit_many(p, many, "exec_00000003"));
}

/* How long others have to wait, in time of this thread, whatever else the machine does. */
struct waiting {
    struct loop *loop;
    bool done;
    uint64_t longest;
};

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void wait_for_turns(void *arg)
{
    struct waiting *w = arg;
    struct error err;
    for (uint64_t now, before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
         !w->done && co_sleep(w->loop, 0, &err) == 0; before = now) {
        now = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
        w->longest = now - before > w->longest ? now - before : w->longest;
    }
}

/* The state of a large commit is put together beside the loop. */
static void turns_of_others(struct place *p)
{
    struct many many = {.count = 60000, .bytes = 10, .folders = 500};
    struct waiting waiting = {.loop = p->loop};
    struct repository r;
    struct manifest m;
    struct error err;
    assert_true(commit_many(p, many, "exec_00000001"));
    history_manifest_init(&m);
    open_repository(p, "box", &r);
    assert_int_equal(co_spawn(p->loop, wait_for_turns, &waiting, NULL, &err), 0);
    uint64_t before = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (repository_tree(&r, r.head, &m, &err) < 0)
        fail_msg("%s", err.message);
    uint64_t all = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - before;
    waiting.done = true;
    assert_int_equal(co_sleep(p->loop, 1, &err), 0);
    assert_int_equal(m.count, many.count + many.folders + 1);
    assert_in_range(waiting.longest, 0, all / 8);
    history_manifest_release(&m);
    repository_close(&r);
}

TEST(as_many_files)
TEST(more_files)
TEST(one_large_file)
TEST(much_in_all)
TEST(long_messages)
TEST(turns_of_others)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_files),  cmocka_unit_test(test_more_files),
        cmocka_unit_test(test_one_large_file), cmocka_unit_test(test_much_in_all),
        cmocka_unit_test(test_long_messages),  cmocka_unit_test(test_turns_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
