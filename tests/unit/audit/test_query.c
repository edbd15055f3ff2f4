/* SPDX-License-Identifier: Apache-2.0 */

#include "audit/query.h"

#include "fixture.h"

static void add(struct place *p, const char *workspace, const char *key, const char *sandbox,
                int64_t when_ms)
{
    struct buf *line = audit_begin(p->audit, "request", when_ms);
    audit_add_text(line, "keyId", slice_of(key), 100);
    audit_add_text(line, "workspace", slice_of(workspace), 100);
    audit_add_text(line, "class", slice_of("exec"), 100);
    audit_add_text(line, "operation", slice_of("POST /x"), 100);
    audit_add_text(line, "sandbox", slice_of(sandbox), 100);
    audit_end(p->audit);
}

static const struct {
    struct audit_query query;
    unsigned count;
    bool more;
} rows[] = {
    {{.limit = 1000, .event = "request"}, 300, false},
    {{.limit = 10, .event = "request"}, 10, true},
    {{.limit = 1000, .workspace = "one"}, 100, false},
    {{.limit = 1000, .workspace = "on"}, 0, false},
    {{.limit = 1000, .workspace = "one", .key = "a"}, 100, false},
    {{.limit = 1000, .workspace = "one", .key = "b"}, 0, false},
    {{.limit = 1000, .sandbox = "\",\"workspace\":\"one"}, 100, false},
    {{.limit = 1000, .operation = "exec"}, 300, false},
    {{.limit = 1000, .operation = "POST /x", .key = "c"}, 100, false},
    {{.limit = 1000, .since_ms = 1000300, .event = "request"}, 150, false},
    {{.limit = 1000, .before = 15, .event = "request"}, 10, false},
    {{.limit = 1000, .after = 14, .event = "request"}, 290, false},
};

static void test_rows(void **state)
{
    struct place p;
    place_make(&p);
    audit_close(p.audit);
    p.options.file_bytes = 64 * 1024; /* several pieces, and several files */
    place_open(&p);
    for (int i = 0; i < 100; i++) {
        /* One whose name looks like a member of the line is found by its name and nothing else. */
        add(&p, "one", "a", "plain", 1000000 + 6 * i);
        add(&p, "two", "b", "\",\"workspace\":\"one", 1000000 + 6 * i);
        add(&p, "three", "c", "other", 1000000 + 6 * i);
    }
    assert_int_equal(audit_flush(p.audit, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        _cleanup_buf_ struct buf lines = BUF_INIT(8 << 20);
        struct audit_matches found;
        struct error err;
        assert_int_equal(audit_find(p.dir_fd, &rows[i].query, &lines, &found, &err), 0);
        if (found.count != rows[i].count)
            fail_msg("row %zu: %u", i, found.count);
        assert_int_equal(found.more, rows[i].more);
    }
    place_remove(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
