/* SPDX-License-Identifier: Apache-2.0 */

/* Help and the manual page: everything that has a row is in them, nothing else is. */

#include "cli/help.h"

#include <string.h>

#include "cmocka_all.h"
#include "toy_commands.h"

static void assert_says(const struct buf *out, const char *text)
{
    if (strstr(out->data, text) == NULL)
        fail_msg("no \"%s\" in:\n%s", text, out->data);
}

static void test_all(void **state)
{
    struct buf out = BUF_INIT(1 << 16);
    assert_true(help_write(&toy, NULL, 0, &out));
    for (size_t i = 0; i < toy.verb_count; i++)
        if (toy_verbs[i].section != NULL)
            assert_says(&out, toy_verbs[i].usage);
    assert_null(strstr(out.data, "__hidden"));
    assert_says(&out, "-o, --output table|json");
    assert_says(&out, "CELLA_API_KEY");
    buf_release(&out);
}

static void test_one_and_several(void **state)
{
    struct buf out = BUF_INIT(1 << 16);
    const char *const make[] = {"box", "make"};
    assert_true(help_write(&toy, make, 2, &out));
    assert_says(&out, "Usage: cella box make [options]");
    assert_says(&out, "Make one.");
    assert_says(&out, "Says more.");
    assert_says(&out, "-e, --env NAME=VALUE");
    assert_says(&out, "--data DIR");
    buf_clear(&out);

    const char *const box[] = {"box"};
    assert_true(help_write(&toy, box, 1, &out));
    assert_says(&out, "box get NAME");
    assert_null(strstr(out.data, "exec"));
    buf_clear(&out);

    const char *const nothing[] = {"nothing"};
    assert_false(help_write(&toy, nothing, 1, &out));
    assert_int_equal(out.len, 0);
    buf_release(&out);
}

static void test_man(void **state)
{
    struct buf out = BUF_INIT(1 << 16);
    man_write(&toy, &out);
    assert_says(&out, "\\fBcella\\fR \\fBrun\\fR \\fINAME\\fR \\fBexec\\fR \\fICOMMAND\\fR...");
    assert_says(&out, "\\fB\\-\\-from\\-file\\fR \\fIFILE\\fR");
    assert_says(&out, ".SH \"Boxes\"");
    assert_null(strstr(out.data, "__hidden"));
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_one_and_several),
        cmocka_unit_test(test_man),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
