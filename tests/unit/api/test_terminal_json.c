/* SPDX-License-Identifier: Apache-2.0 */

/* The frames of the terminal's WebSocket. */

#include "helpers.h"

#include <stdio.h>

#include "api/v0/terminal_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

/* --- from a client --- */

static void test_messages(void **state)
{
    static const struct {
        const char *text;
        enum terminal_message_kind kind;
        const char *data;
        size_t len;
        unsigned cols, rows;
    } rows[] = {
        {"{\"type\":\"input\",\"data\":\"ls\\n\"}", TERMINAL_IS_INPUT, "ls\n", 3},
        {"{\"type\":\"input\",\"data\":\"\"}", TERMINAL_IS_INPUT, "", 0},
        {"{\"type\":\"input\",\"data\":\"a\\u0000\\u00e9\"}", TERMINAL_IS_INPUT, "a\0\xc3\xa9", 4},
        {"{\"type\":\"input\",\"dataBase64\":\"/wA=\"}", TERMINAL_IS_INPUT, "\xff\0", 2},
        {"{\"type\":\"resize\",\"cols\":132,\"rows\":43}", TERMINAL_IS_RESIZE, NULL, 0, 132, 43},
        {"{\"type\":\"resize\",\"cols\":132}", TERMINAL_IS_RESIZE, NULL, 0, 132, 0},
        {"{\"type\":\"ping\"}", TERMINAL_IS_PING},
        {"{\"type\":\"input\",\"data\":\"x\",\"cols\":80,\"rows\":24}", TERMINAL_IS_INPUT, "x", 1,
         80, 24},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct terminal_message message;
        struct error err = {0};
        if (terminal_message_from_json(*state, slice_of(rows[i].text), &message, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_int_equal(message.kind, rows[i].kind);
        assert_int_equal(message.data.len, rows[i].len);
        if (rows[i].len > 0)
            assert_memory_equal(message.data.data, rows[i].data, rows[i].len);
        assert_int_equal(message.cols, rows[i].cols);
        assert_int_equal(message.rows, rows[i].rows);
    }
}

static void test_bad_messages(void **state)
{
    static const struct {
        const char *text;
        enum error_code code;
        const char *names; /* what the message has to name */
    } rows[] = {
        {"", ERROR_INVALID_JSON, ""},
        {"nonsense", ERROR_INVALID_JSON, ""},
        {"[]", ERROR_INVALID_ARGUMENT, "object"},
        {"{}", ERROR_INVALID_ARGUMENT, "type"},
        {"{\"type\":1}", ERROR_INVALID_ARGUMENT, "type"},
        {"{\"type\":\"exit\"}", ERROR_INVALID_ARGUMENT, "exit"},
        {"{\"type\":\"input\"}", ERROR_INVALID_ARGUMENT, "dataBase64"},
        {"{\"type\":\"input\",\"data\":1}", ERROR_INVALID_ARGUMENT, "data"},
        {"{\"type\":\"input\",\"data\":\"a\",\"dataBase64\":\"YQ==\"}", ERROR_INVALID_ARGUMENT,
         "exactly one"},
        {"{\"type\":\"input\",\"dataBase64\":\"!\"}", ERROR_INVALID_ARGUMENT, "dataBase64"},
        {"{\"type\":\"resize\"}", ERROR_INVALID_ARGUMENT, "cols"},
        {"{\"type\":\"resize\",\"cols\":0}", ERROR_INVALID_ARGUMENT, "cols"},
        {"{\"type\":\"resize\",\"cols\":4097}", ERROR_INVALID_ARGUMENT, "cols"},
        {"{\"type\":\"resize\",\"rows\":1.5}", ERROR_INVALID_ARGUMENT, "rows"},
        {"{\"type\":\"ping\",\"more\":1}", ERROR_UNKNOWN_FIELD, "more"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct terminal_message message;
        struct error err = {0};
        if (terminal_message_from_json(*state, slice_of(rows[i].text), &message, &err) == 0)
            fail_msg("accepted: %s", rows[i].text);
        assert_int_equal(err.code, rows[i].code);
        if (strstr(err.message, rows[i].names) == NULL)
            fail_msg("%s: %s", rows[i].text, err.message);
    }
}

static void test_open(void **state)
{
    struct agent_terminal_open open;
    struct error err = {0};
    yyjson_val *body = value_of(
        *state,
        "{\"sessionId\":\"s\",\"command\":\"top\",\"shell\":\"zsh\",\"workingDir\":\"/a/../b\","
        "\"env\":{\"A\":\"1\"},\"user\":\"u\",\"cols\":1,\"rows\":2,\"idleTimeout\":3}");
    assert_int_equal(terminal_open_from_json(*state, body, &open, &err), 0);
    assert_string_equal(open.session, "s");
    assert_string_equal(open.command, "top");
    assert_string_equal(open.shell, "zsh");
    assert_string_equal(open.cwd, "/b");
    assert_string_equal(open.user, "u");
    assert_string_equal(open.env.data, "A=1");
    assert_int_equal(open.cols, 1);
    assert_int_equal(open.rows, 2);
    assert_int_equal(open.idle_ms, 3000);
    assert_int_equal(terminal_open_from_json(*state, NULL, &open, &err), 0);
    assert_null(open.session);
    assert_null(open.cwd);

    static const char *const bad[] = {
        "{\"cols\":0}",        "{\"rows\":9999}",         "{\"workingDir\":\"x\"}",
        "{\"env\":{\"A\":1}}", "{\"idleTimeout\":86401}", "{\"x\":1}"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (terminal_open_from_json(*state, value_of(*state, bad[i]), &open, &err) == 0)
            fail_msg("accepted: %s", bad[i]);
}

/* --- to a client --- */

static void assert_frame(struct slice frame, const char *text)
{
    if (frame.len != strlen(text) || memcmp(frame.data, text, frame.len) != 0)
        fail_msg("%.*s instead of %s", (int)frame.len, frame.data, text);
}

static void test_frames(void **state)
{
    struct error why;
    error_set(&why, ERROR_UNAVAILABLE, "gone");
    assert_frame(terminal_dropped_frame(*state, 5, 9),
                 "{\"type\":\"dropped\",\"dropped\":5,\"offset\":9}");
    assert_frame(terminal_taken_frame(*state, 7), "{\"type\":\"taken\",\"taken\":7}");
    assert_frame(terminal_pong_frame(*state), "{\"type\":\"pong\"}");
    assert_frame(terminal_error_frame(*state, &why),
                 "{\"type\":\"error\",\"code\":\"UNAVAILABLE\",\"data\":\"gone\"}");
    assert_frame(terminal_exit_frame(*state, &(struct agent_terminal_exit){.exit_code = 3}),
                 "{\"type\":\"exit\",\"exitCode\":3,\"reason\":\"exited\"}");
    struct agent_terminal_exit killed = {.exit_code = 137, .signal = 9, .reason = TERMINAL_CLOSED};
    assert_frame(terminal_exit_frame(*state, &killed),
                 "{\"type\":\"exit\",\"exitCode\":137,\"signal\":9,\"reason\":\"closed\"}");
    /* What an agent makes up does not get out of bounds. */
    struct agent_terminal_exit odd = {.exit_code = 1000, .reason = 77};
    assert_frame(terminal_exit_frame(*state, &odd),
                 "{\"type\":\"exit\",\"exitCode\":232,\"reason\":\"exited\"}");
}

#define BYTES(literal) ((struct slice){literal, sizeof(literal) - 1})

static void test_characters_are_not_cut(void **state)
{
    struct terminal_text text = {0};
    assert_frame(terminal_output_frame(*state, &text, 10, BYTES("a\xe2\x82"), false),
                 "{\"type\":\"output\",\"data\":\"a\",\"offset\":10}");
    assert_int_equal(text.held_len, 2);
    assert_frame(terminal_output_frame(*state, &text, 13, BYTES("\xac"), false),
                 "{\"type\":\"output\",\"data\":\"\xe2\x82\xac\",\"offset\":11}");
    assert_int_equal(text.held_len, 0);
    /* Byte by byte. */
    static const char face[] = "\xf0\x9f\x98\x80";
    for (int i = 0; i < 3; i++)
        assert_int_equal(terminal_output_frame(*state, &text, 20 + (uint64_t)i,
                                               (struct slice){face + i, 1}, false)
                             .len,
                         0);
    assert_frame(terminal_output_frame(*state, &text, 23, (struct slice){face + 3, 1}, false),
                 "{\"type\":\"output\",\"data\":\"\xf0\x9f\x98\x80\",\"offset\":20}");
    /* Its rest never comes. */
    terminal_output_frame(*state, &text, 30, BYTES("\xc3"), false);
    assert_frame(
        terminal_output_frame(*state, &text, 0, (struct slice){0}, true),
        "{\"type\":\"output\",\"data\":\"\xef\xbf\xbd\",\"dataBase64\":\"ww==\",\"offset\":30}");
    assert_int_equal(terminal_output_frame(*state, &text, 0, (struct slice){0}, true).len, 0);
}

static void test_bytes_that_are_no_text(void **state)
{
    struct terminal_text text = {0};
    assert_frame(
        terminal_output_frame(*state, &text, 0, BYTES("a\xff\x80"), false),
        "{\"type\":\"output\",\"data\":\"a\xef\xbf\xbd\xef\xbf\xbd\",\"dataBase64\":\"Yf+A\","
        "\"offset\":0}");
    assert_int_equal(text.held_len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_messages),
        api_test(test_bad_messages),
        api_test(test_open),
        api_test(test_frames),
        api_test(test_characters_are_not_cut),
        api_test(test_bytes_that_are_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
