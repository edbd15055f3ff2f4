/* SPDX-License-Identifier: Apache-2.0 */

/* A log of one file with ten lines, and everything that can be done to it. */

#include "audit/verify.h"

#include "fixture.h"

enum { LINES = 10 };

struct lines {
    char *text[LINES + 2];
    size_t count;
};

static void change(struct lines *l)
{
    char *at = strstr(l->text[4], "\"n\":");
    at[4]++;
}

static void change_first(struct lines *l)
{
    char *at = strstr(l->text[0], "version");
    at[0]++;
}

static void change_hash(struct lines *l)
{
    char *at = strstr(l->text[9], "\"hash\":\"");
    at[8] = at[8] == 'a' ? 'b' : 'a';
}

static void cut_out(struct lines *l)
{
    memmove(&l->text[4], &l->text[5], (l->count - 5) * sizeof(l->text[0]));
    l->count--;
}

static void cut_two(struct lines *l)
{
    cut_out(l);
    cut_out(l);
}

static void swap(struct lines *l)
{
    char *four = l->text[4];
    l->text[4] = l->text[5];
    l->text[5] = four;
}

static void repeat(struct lines *l)
{
    memmove(&l->text[7], &l->text[6], (l->count - 6) * sizeof(l->text[0]));
    l->text[6] = l->text[3];
    l->count++;
}

static void garbage(struct lines *l)
{
    static char words[] = "hello";
    memmove(&l->text[4], &l->text[3], (l->count - 3) * sizeof(l->text[0]));
    l->text[3] = words;
    l->count++;
}

static void cut_end(struct lines *l)
{
    l->count -= 2;
}

static void cut_beginning(struct lines *l)
{
    memmove(&l->text[0], &l->text[2], (l->count - 2) * sizeof(l->text[0]));
    l->count -= 2;
}

/* As somebody would who knows how hashes are made: the chain after it is right again. */
static void rewrite(struct lines *l)
{
    struct audit_chain chain;
    static char kept[LINES][1024];
    assert_int_equal(audit_chain_init(&chain, NULL), 0);
    for (size_t i = 0; i < l->count; i++) {
        _cleanup_buf_ struct buf line = BUF_INIT(4096);
        struct audit_line parsed;
        assert_true(audit_line_parse(slice_of(l->text[i]), &parsed));
        buf_add(&line, parsed.body.data, parsed.body.len);
        if (i == 4)
            strstr(line.data, "\"n\":")[4]++;
        audit_chain_seal(&chain, &line, 0);
        snprintf(kept[i], sizeof(kept[i]), "%.*s", (int)line.len - 1, line.data);
        l->text[i] = kept[i];
    }
    audit_chain_release(&chain);
}

static void nothing(struct lines *l)
{
}

static const struct {
    void (*tamper)(struct lines *l);
    size_t problems;
    uint64_t line; /* of the first one */
    const char *text;
} rows[] = {
    {nothing, 0, 0, ""},
    {change, 1, 5, "it was changed"},
    {change_first, 1, 1, "changed"},
    {change_hash, 2, 10, "it was changed"}, /* and the head does not fit */
    {cut_out, 1, 5, "line 5 is missing before it"},
    {cut_two, 1, 5, "the lines 5 to 6 are missing before it"},
    {swap, 2, 5, "line 5 is missing before it"},
    {repeat, 1, 7, "moved, or put in a second time"},
    {garbage, 1, 4, "not a line of the log"},
    {cut_end, 1, 0, "lines were removed from its end"},
    {cut_beginning, 4, 1, "renamed, or lines were removed"},
    {rewrite, 1, 10, "not the one that was kept elsewhere"},
};

static void check_row(size_t row)
{
    struct place p;
    struct findings found;
    struct lines l = {0};
    place_make(&p);
    place_write(&p, "x", LINES - 3);
    audit_close(p.audit);
    p.audit = NULL;
    char *text = strdup(file_read(&p, 1)), *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';)
        l.text[l.count++] = line;
    assert_int_equal(l.count, LINES);
    rows[row].tamper(&l);
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    for (size_t i = 0; i < l.count; i++) {
        buf_adds(&out, l.text[i]);
        buf_addc(&out, '\n');
    }
    file_write(&p, 1, out.data);
    place_verify(&p, &found);
    if (found.count != rows[row].problems)
        for (size_t i = 0; i < found.count; i++)
            print_message("row %zu: %lu: %s\n", row, found.problems[i].line,
                          found.problems[i].text);
    assert_int_equal(found.count, rows[row].problems);
    if (found.count > 0) {
        assert_int_equal(found.problems[0].line, rows[row].line);
        assert_non_null(strstr(found.problems[0].text, rows[row].text));
    }
    free(text);
    place_open(&p); /* whatever was done to it, a server starts */
    place_remove(&p);
}

static void test_tampering(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i);
}

static void test_missing_file(void **state)
{
    struct place p;
    struct findings found;
    struct audit_files files;
    char name[AUDIT_FILE_NAME_SIZE];
    for (size_t which = 0; which < 3; which++) {
        place_make(&p);
        audit_close(p.audit);
        p.options.file_bytes = 4096;
        place_open(&p);
        place_write(&p, "x", 60);
        audit_close(p.audit);
        p.audit = NULL;
        place_verify(&p, &found);
        assert_int_equal(found.count, 0);
        assert_int_equal(audit_files_list(p.dir_fd, &files, NULL), 0);
        assert_true(files.count >= 3);
        size_t gone = which == 0 ? 0 : which == 1 ? 1 : files.count - 1;
        audit_file_name(files.items[gone].first, name);
        assert_int_equal(unlinkat(p.dir_fd, name, 0), 0);
        audit_files_release(&files);
        place_verify(&p, &found);
        assert_int_equal(found.count, 1);
        assert_non_null(strstr(found.problems[0].text, which == 2 ? "removed" : "missing"));
        place_open(&p);
        place_remove(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tampering),
        cmocka_unit_test(test_missing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
