/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "sandbox/history_rules.h"

#define LIST(text) ((struct slice){text, sizeof(text)})

static bool has(struct slice list, const char *wanted)
{
    strv_each (item, list)
        if (strcmp(item, wanted) == 0)
            return true;
    return false;
}

static void reading(void **state)
{
    struct history_rules *rules;
    struct error err;
    assert_int_equal(history_rules_read((struct slice){"", 0}, &rules, &err), 0);
    assert_true(rules->enabled);
    assert_int_equal(rules->file_max, 10 << 20);
    assert_true(slice_eq(rules->ignore, history_rules_usual.ignore));
    free(rules);
    assert_int_equal(history_rules_read(LIST("enabled=false\0maxFileSize=1Ki\0ignore=\0"
                                             "ignore=dist\0ignore=*.log"),
                                        &rules, &err),
                     0);
    assert_false(rules->enabled);
    assert_int_equal(rules->file_max, 1024);
    assert_true(slice_eq(rules->ignore, LIST(".git\0dist\0*.log")));
    free(rules);
    assert_int_equal(
        history_rules_read(LIST("ignore=\0ignore=@default\0ignore=dist"), &rules, &err), 0);
    assert_true(has(rules->ignore, "node_modules") && has(rules->ignore, "dist"));
    free(rules);
    assert_int_equal(history_rules_read(LIST("ignore=\0ignore=@default"), &rules, &err), 0);
    assert_true(slice_eq(rules->ignore, history_rules_usual.ignore));
    free(rules);
    assert_int_equal(history_rules_read(LIST("ignore="), &rules, &err), 0);
    assert_true(slice_eq(rules->ignore, LIST(".git")));
    free(rules);
}

static void refusing(void **state)
{
    static const struct {
        struct slice list;
        const char *word;
    } rows[] = {
        {LIST("maxFileSize=0"), "from 1 to 64Mi"},
        {LIST("maxFileSize=65Mi"), "from 1 to 64Mi"},
        {LIST("maxFileSize=much"), "maxFileSize"},
        {LIST("ignore=/abs"), "begins with a slash"},
        {LIST("ignore=dist/"), "ends with a slash"},
        {LIST("ignore=!keep"), "would keep"},
        {LIST("ignore=a/**/b"), "two stars"},
        {LIST("ignore=[ab]"), "bracket"},
        {LIST("ignore=a\\b"), "backslash"},
        {LIST("ignore=a\nb"), "control character"},
        {LIST("ignore=@default\0ignore=@default"), "twice"},
    };
    struct error err;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (history_rules_check(rows[i].list, &err) == 0 ||
            strstr(err.message, rows[i].word) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    assert_int_equal(history_rules_check((struct slice){"x", 1}, &err), -1);
}

static void bounds(void **state)
{
    struct error err;
    struct buf list = BUF_INIT(1 << 20);
    for (int i = 0; i <= HISTORY_IGNORE_MAX; i++) {
        assert_int_equal(history_rules_check((struct slice){list.data, list.len}, &err), 0);
        buf_addf(&list, "ignore=%d", i);
        buf_addc(&list, '\0');
    }
    assert_int_equal(history_rules_check((struct slice){list.data, list.len}, &err), -1);
    assert_non_null(strstr(err.message, "at most 100 patterns"));
    buf_clear(&list);
    buf_addf(&list, "ignore=%0*d", HISTORY_IGNORE_LEN_MAX + 1, 0);
    buf_addc(&list, '\0');
    assert_int_equal(history_rules_check((struct slice){list.data, list.len}, &err), -1);
    buf_release(&list);
}

static void laying_over(void **state)
{
    struct arena *arena = arena_new();
    struct slice under = LIST("enabled=false\0maxFileSize=1Mi\0ignore=\0ignore=a\0ignore=b");
    struct slice none = {"", 0};
    assert_true(slice_eq(history_rules_over(none, under, arena), under));
    assert_true(slice_eq(history_rules_over(under, none, arena), under));
    assert_true(slice_eq(history_rules_over(LIST("enabled=true\0ignore="), under, arena),
                         LIST("enabled=true\0maxFileSize=1Mi\0ignore=")));
    assert_true(slice_eq(history_rules_over(LIST("ignore=\0ignore=c"), under, arena),
                         LIST("enabled=false\0maxFileSize=1Mi\0ignore=\0ignore=c")));
    arena_free(arena);
}

static void shown(void **state)
{
    struct arena *arena = arena_new();
    struct slice said = LIST("maxFileSize=1Mi\0ignore=\0ignore=@default\0ignore=c");
    struct slice none = {"", 0};
    assert_string_equal(history_rules_size(none), "10Mi");
    assert_string_equal(history_rules_size(said), "1Mi");
    assert_true(history_rules_enabled(none) && history_rules_enabled(said));
    assert_true(slice_eq(history_rules_ignore(none, arena), LIST("@default")));
    assert_true(slice_eq(history_rules_ignore(said, arena), LIST("@default\0c")));
    assert_int_equal(history_rules_ignore(LIST("ignore="), arena).len, 0);
    arena_free(arena);
}

static void in_a_commit(void **state)
{
    struct arena *arena = arena_new();
    struct buf text = BUF_INIT(1 << 20);
    history_ignore_write(history_rules_usual.ignore, &text);
    assert_true(slice_eq(history_ignore_read((struct slice){text.data, text.len}, arena),
                         history_rules_usual.ignore));
    assert_true(slice_eq(history_ignore_read(slice_of("a\nb\ncut"), arena), LIST("a\0b")));
    assert_int_equal(history_ignore_read(slice_of("cut"), arena).len, 0);
    buf_clear(&text);
    for (int i = 0; i < 100000; i++)
        buf_adds(&text, "x\n");
    struct slice read = history_ignore_read((struct slice){text.data, text.len}, arena);
    assert_true(strv_valid(read) && read.len < PATTERNS_BYTES_MAX);
    assert_true(history_ignore_mark(LIST("a")) != history_ignore_mark(LIST("b")));
    buf_release(&text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading),     cmocka_unit_test(refusing), cmocka_unit_test(bounds),
        cmocka_unit_test(laying_over), cmocka_unit_test(shown),    cmocka_unit_test(in_a_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
