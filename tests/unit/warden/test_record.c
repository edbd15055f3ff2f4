/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct record sample = {
    .state = RECORD_RUNNING,
    .pid = 4711,
    .start_time = UINT64_C(18446744073709551615),
    .slot = 16383,
    .fresh = true,
    .boot_id = "01234567-89ab-cdef-0123-456789abcdef",
    .net_index = 65532,
    .net_mark = UINT32_MAX,
    .net_ruled = true,
};

static void same(const struct record *a, const struct record *b)
{
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->pid, b->pid);
    assert_true(a->start_time == b->start_time);
    assert_int_equal(a->slot, b->slot);
    assert_int_equal(a->fresh, b->fresh);
    assert_string_equal(a->boot_id, b->boot_id);
    assert_int_equal(a->net_index, b->net_index);
    assert_int_equal(a->net_mark, b->net_mark);
    assert_int_equal(a->net_ruled, b->net_ruled);
}

static void what_is_written_is_read(void **state)
{
    struct buf text = BUF_INIT(512);
    struct record read;
    record_format(&sample, &text);
    assert_false(text.failed);
    assert_true(record_parse(text.data, &read));
    same(&read, &sample);

    struct record making = {.state = RECORD_MAKING, .slot = -1, .boot_id = "x", .net_index = -1};
    buf_clear(&text);
    record_format(&making, &text);
    assert_true(record_parse(text.data, &read));
    same(&read, &making);

    struct record paused = sample;
    paused.state = RECORD_PAUSED;
    buf_clear(&text);
    record_format(&paused, &text);
    assert_true(record_parse(text.data, &read));
    same(&read, &paused);
    buf_release(&text);
}

static void every_cut_is_noticed(void **state)
{
    struct buf text = BUF_INIT(512);
    struct record read;
    record_format(&sample, &text);
    for (size_t len = 0; len < text.len; len++) {
        char *cut = strndup(text.data, len);
        assert_false(record_parse(cut, &read));
        free(cut);
    }
    buf_addc(&text, 'x');
    assert_false(record_parse(text.data, &read));
    buf_release(&text);
}

static void strangers_are_refused(void **state)
{
    static const char *const texts[] = {
        "state dancing\npid 1\nstart 1\nslot 1\nfresh 0\nboot x\nend\n",
        "state making\npid -4\nstart 1\nslot 1\nfresh 0\nboot x\nend\n",
        "pid 1\nstate making\nstart 1\nslot 1\nfresh 0\nboot x\nend\n",
    };
    struct record read;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(record_parse(texts[i], &read));
}

static void saves_and_removes(void **state)
{
    char dir[] = "/tmp/cella-record-XXXXXX";
    struct record read;
    struct error err;
    assert_non_null(mkdtemp(dir));
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(record_save(fd, "abc", &sample, &err), 0);
    assert_int_equal(record_load(fd, "abc", &read, &err), 0);
    same(&read, &sample);
    assert_int_equal(record_remove(fd, "abc", &err), 0);
    assert_int_equal(record_remove(fd, "abc", &err), 0);
    assert_int_equal(record_load(fd, "abc", &read, &err), -1);
    assert_int_equal(err.code, ERROR_FILE_NOT_FOUND);
    close(fd);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left in it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(saves_and_removes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
