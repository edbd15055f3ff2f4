/* SPDX-License-Identifier: Apache-2.0 */

/* The messages of …/exec/ws. What the integration tests say in words is here to the byte. */

#include "helpers.h"

#include <signal.h>
#include <stdio.h>

#include "api/v0/exec_message.h"
#include "base/cleanup.h"

static void test_messages(void **state)
{
    static const struct {
        const char *text;
        enum exec_ask ask;
    } rows[] = {
        {"{\"type\":\"start\",\"id\":\"a\",\"command\":\"x\"}", EXEC_ASK_START},
        {"{\"type\":\"start\",\"id\":\"a\",\"command\":\"x\",\"tty\":false}", EXEC_ASK_START},
        {"{\"type\":\"attach\",\"id\":\"a\",\"process\":7,\"offset\":3}", EXEC_ASK_ATTACH},
        {"{\"type\":\"stdin\",\"id\":\"a\",\"data\":\"\\u0000x\"}", EXEC_ASK_STDIN},
        {"{\"type\":\"stdin\",\"id\":\"a\",\"end\":true}", EXEC_ASK_STDIN},
        {"{\"type\":\"signal\",\"id\":\"a\",\"signal\":\"int\"}", EXEC_ASK_SIGNAL},
        {"{\"type\":\"cancel\",\"id\":\"a\",\"grace\":2}", EXEC_ASK_CANCEL},
        {"{\"type\":\"detach\",\"id\":\"a\"}", EXEC_ASK_DETACH},
        {"{\"type\":\"ping\"}", EXEC_ASK_PING},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exec_ask_message m;
        const char *id;
        struct error err = {0};
        if (exec_message_read(*state, slice_of(rows[i].text), &m, &id, &err) < 0)
            fail_msg("%s: %s", rows[i].text, err.message);
        assert_int_equal(m.ask, rows[i].ask);
    }
}

static void test_details(void **state)
{
    struct exec_ask_message m;
    const char *id, *text;
    text = "{\"type\":\"start\",\"id\":\"a\",\"command\":\"x\",\"waitForCompletion\":true,"
           "\"stdin\":\"all\",\"encoding\":\"base64\"}";
    assert_int_equal(exec_message_read(*state, slice_of(text), &m, &id, NULL), 0);
    assert_true(m.base64 && m.exec.flags == (EXEC_STDIN | EXEC_STDIN_ONCE));
    text = "{\"type\":\"attach\",\"id\":\"a\",\"process\":\"p\",\"offset\":1,"
           "\"resume\":\"20:e2:\",\"hold\":true}";
    assert_int_equal(exec_message_read(*state, slice_of(text), &m, &id, NULL), 0);
    assert_true(m.hold && m.from.offset == 20 && m.from.held_len[0] == 1 &&
                m.from.held_len[1] == 0);
    assert_string_equal(m.process, "p");
    text = "{\"type\":\"signal\",\"id\":\"a\",\"signal\":15}";
    assert_int_equal(exec_message_read(*state, slice_of(text), &m, &id, NULL), 0);
    assert_int_equal(m.signal, SIGTERM);
    /* Who is meant is known though the rest is wrong. */
    text = "{\"type\":\"signal\",\"id\":\"a\",\"signal\":\"SIGSTOP\"}";
    assert_int_equal(exec_message_read(*state, slice_of(text), &m, &id, NULL), -1);
    assert_string_equal(id, "a");
}

static void test_places(void **state)
{
    static const char *const good[] = {"0", "17", "9223372036854775807:f09f98:f09f98",
                                       "1:e2:", "1::e282"};
    static const char *const bad[] = {
        "",   "-1", "1:", "1:e:", "1:e2", "1:E2:", "1:e2828282:", "1:e2:x", "9223372036854775808",
        "1 ", " 1", "0x1"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct exec_place place;
        char text[EXEC_PLACE_TEXT];
        assert_int_equal(exec_place_parse(good[i], &place, NULL), 0);
        exec_place_text(&place, text);
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct exec_place place;
        if (exec_place_parse(bad[i], &place, NULL) == 0)
            fail_msg("\"%s\" was taken", bad[i]);
    }
}

/* A character of stdout with stderr in its middle, and a reader that comes back there. */
static void test_text_across_streams(void **state)
{
    struct exec_place place = {0}, again;
    char text[EXEC_PLACE_TEXT];
    struct slice got = exec_text_take(*state, &place, 0, slice_of("a\xe2"), false);
    assert_true(slice_eq(got, slice_of("a")));
    got = exec_text_take(*state, &place, 1, slice_of("!"), false);
    assert_true(slice_eq(got, slice_of("!")));
    place.offset = 3;
    exec_place_text(&place, text);
    assert_string_equal(text, "3:e2:");
    assert_int_equal(exec_place_parse(text, &again, NULL), 0);
    got = exec_text_take(*state, &again, 0,
                         slice_of("\x82\xac"
                                  "b"),
                         false);
    assert_true(slice_eq(got, slice_of("\xe2\x82\xac"
                                       "b")));
    got = exec_text_take(*state, &place, 0, (struct slice){NULL, 0}, true);
    assert_true(slice_eq(got, slice_of("\xe2")));
}

static void test_answers(void **state)
{
    const struct exec_place place = {.offset = 9, .held_len = {1, 0}, .held = {{'\xe2'}}};
    struct slice text = exec_output_message(*state, "a", 1, false, slice_of("x\xff"), &place);
    assert_true(
        slice_eq(text, slice_of("{\"type\":\"stderr\",\"id\":\"a\",\"data\":\"x\xef\xbf\xbd\","
                                "\"dataBase64\":\"eP8=\",\"offset\":9,\"resume\":\"9:e2:\"}")));
    text = exec_output_message(*state, "a", 0, true, slice_of("x"), &place);
    assert_true(slice_eq(text, slice_of("{\"type\":\"stdout\",\"id\":\"a\",\"dataBase64\":\"eA==\","
                                        "\"offset\":9,\"resume\":\"9:e2:\"}")));
    const struct error why = {.code = ERROR_CONFLICT, .message = "no"};
    text = exec_error_message(*state, NULL, &why, false, NULL);
    assert_true(slice_eq(
        text,
        slice_of("{\"type\":\"error\",\"code\":\"CONFLICT\",\"message\":\"no\",\"ended\":false}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(test_messages), api_test(test_details),
        api_test(test_places),   api_test(test_text_across_streams),
        api_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
