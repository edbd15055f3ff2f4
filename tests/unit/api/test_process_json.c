/* SPDX-License-Identifier: Apache-2.0 */

/* The shapes of processes and of their output, and what an exec request may say. */

#include "helpers.h"

#include "api/v0/process_exec.h"
#include "api/v0/process_json.h"
#include "base/cleanup.h"
#include "base/limits.h"

static const struct agent_process ended = {
    .pid = 1234,
    .state = PROCESS_EXITED,
    .started_ms = 1696952400000,
    .ended_ms = 1696952700000,
    .command = "python3 script.py",
    .cwd = "/home/user",
    .name = "web",
    .flags = EXEC_RESTART,
    .restarts = 2,
    .max_restarts = RESTARTS_UNLIMITED,
};

static const char *process_text(struct arena *arena, const struct agent_process *process)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    process_json(arena, doc, root, process);
    return text_of(arena, doc, root);
}

static void ended_process(void **state)
{
    assert_string_equal(process_text(*state, &ended),
                        "{\"pid\":1234,\"command\":\"python3 script.py\",\"status\":\"completed\","
                        "\"startedAt\":\"Tue, 10 Oct 2023 15:40:00 GMT\","
                        "\"completedAt\":\"Tue, 10 Oct 2023 15:45:00 GMT\","
                        "\"workingDir\":\"/home/user\",\"exitCode\":0,"
                        "\"reason\":null,\"name\":\"web\","
                        "\"keepAlive\":false,\"stdin\":false,\"restartOnFailure\":true,"
                        "\"maxRestarts\":-1,\"restartCount\":2}");
}

static void running_process(void **state)
{
    struct agent_process process = ended;
    process.state = PROCESS_RUNNING;
    process.ended_ms = 0;
    const char *text = process_text(*state, &process);
    assert_non_null(strstr(text, "\"status\":\"running\""));
    assert_non_null(strstr(text, "\"exitCode\":null"));
    assert_null(strstr(text, "completedAt"));
}

static void every_end_has_a_status(void **state)
{
    static const struct {
        uint64_t state, exit_code;
        const char *status, *shown;
    } rows[] = {
        {PROCESS_EXITED, 0, "\"completed\"", "\"exitCode\":0"},
        {PROCESS_EXITED, 3, "\"failed\"", "\"exitCode\":3"},
        {PROCESS_EXITED, 139, "\"failed\"", "\"exitCode\":139"},
        {PROCESS_STOPPED, 143, "\"stopped\"", "\"exitCode\":143"},
        {PROCESS_STOPPED, 0, "\"stopped\"", "\"exitCode\":0"},
        {PROCESS_KILLED, 137, "\"killed\"", "\"exitCode\":137,\"reason\":null"},
        {PROCESS_TIMED_OUT, 137, "\"timeout\"", "\"exitCode\":124,\"reason\":\"TIMEOUT\""},
        {PROCESS_OUT_OF_MEMORY, 137, "\"failed\"",
         "\"exitCode\":137,\"reason\":null,\"outOfMemory\":true"},
        {PROCESS_MEMORY_LIMIT, 137, "\"failed\"", "\"exitCode\":137,\"reason\":\"MEMORY_LIMIT\""},
        {PROCESS_PROCESS_LIMIT, 2, "\"failed\"", "\"exitCode\":137,\"reason\":\"PROCESS_LIMIT\""},
        {PROCESS_OUTPUT_LIMIT, 0, "\"failed\"", "\"exitCode\":137,\"reason\":\"OUTPUT_LIMIT\""},
        {99, 1, "\"failed\"", "\"exitCode\":1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct agent_process process = ended;
        process.state = rows[i].state;
        process.exit_code = rows[i].exit_code;
        const char *text = process_text(*state, &process);
        assert_non_null(strstr(text, rows[i].status));
        assert_non_null(strstr(text, rows[i].shown));
    }
}

static const char *output_text(struct arena *arena, struct process_log out,
                               struct process_log errors)
{
    yyjson_mut_doc *doc = json_doc(arena);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    process_output_json(arena, doc, root, &out, &errors, NULL);
    return text_of(arena, doc, root);
}

static void output_as_it_is(void **state)
{
    assert_string_equal(output_text(*state, (struct process_log){slice_of("a\n"), 0},
                                    (struct process_log){{NULL, 0}, 0}),
                        "{\"stdout\":\"a\\n\",\"stderr\":\"\"}");
}

static void dropped_output_is_marked(void **state)
{
    assert_string_equal(output_text(*state, (struct process_log){slice_of("tail"), 17},
                                    (struct process_log){slice_of("e"), 0}),
                        "{\"stdout\":\"[17 earlier bytes dropped]\\ntail\",\"stderr\":\"e\","
                        "\"dropped\":{\"stdout\":17,\"stderr\":0}}");
}

static void binary_output_is_there_twice(void **state)
{
    assert_string_equal(
        output_text(*state, (struct process_log){{"\xff", 1}, 0},
                    (struct process_log){{"\xfe", 1}, 5}),
        "{\"stdout\":\"\xef\xbf\xbd\",\"stdoutBase64\":\"/w==\","
        "\"stderr\":\"[5 earlier bytes dropped]\\n\xef\xbf\xbd\",\"stderrBase64\":\"/g==\","
        "\"dropped\":{\"stdout\":0,\"stderr\":5}}");
}

static void exec_request_whole(void **state)
{
    struct process_request request;
    struct error err;
    yyjson_val *body = value_of(
        *state,
        "{\"command\":\"make\",\"workingDir\":\"/a/./b//\",\"env\":{\"A\":\"1\",\"B\":\"\"},"
        "\"waitForCompletion\":true,\"timeout\":30,\"waitForPorts\":[]}");
    assert_int_equal(process_exec_from_json(*state, body, &request, &err), 0);
    assert_string_equal(request.exec.command, "make");
    assert_string_equal(request.exec.cwd, "/a/b");
    assert_int_equal(request.exec.env.len, 7);
    assert_memory_equal(request.exec.env.data, "A=1\0B=\0", 7);
    assert_int_equal(request.exec.timeout_ms, 30000);
    assert_int_equal(request.exec.flags, EXEC_WAIT);
}

static void exec_request_least(void **state)
{
    struct process_request request;
    struct error err;
    yyjson_val *body = value_of(*state, "{\"command\":\"true\",\"timeout\":null}");
    assert_int_equal(process_exec_from_json(*state, body, &request, &err), 0);
    assert_null(request.exec.cwd);
    assert_int_equal(request.exec.env.len, 0);
    assert_int_equal(request.exec.timeout_ms, 0);
    assert_int_equal(request.exec.flags, 0);
}

static void exec_request_with_everything(void **state)
{
    struct process_request request;
    struct error err;
    yyjson_val *body = value_of(
        *state, "{\"command\":\"serve\",\"name\":\"web-1\",\"waitForPorts\":[80,8080],"
                "\"restartOnFailure\":true,\"maxRestarts\":3,\"keepAlive\":true,\"stdin\":\"in\"}");
    assert_int_equal(process_exec_from_json(*state, body, &request, &err), 0);
    assert_string_equal(request.exec.name, "web-1");
    assert_int_equal(request.port_count, 2);
    assert_int_equal(request.ports[1], 8080);
    assert_int_equal(request.exec.flags, EXEC_RESTART | EXEC_KEEP_ALIVE | EXEC_STDIN);
    assert_int_equal(request.exec.max_restarts, 3);
    assert_int_equal(request.exec.stdin_data.len, 2);

    body = value_of(*state, "{\"command\":\"cat\",\"waitForCompletion\":true,\"stdin\":\"\","
                            "\"restartOnFailure\":true,\"maxRestarts\":-1}");
    assert_int_equal(process_exec_from_json(*state, body, &request, &err), 0);
    assert_int_equal(request.exec.flags, EXEC_WAIT | EXEC_RESTART | EXEC_STDIN | EXEC_STDIN_ONCE);
    assert_int_equal(request.exec.max_restarts, RESTARTS_UNLIMITED);
}

static void exec_request_with_limits(void **state)
{
    struct process_request request;
    struct error err;
    yyjson_val *body =
        value_of(*state, "{\"command\":\"make\",\"limits\":{\"memory\":\"256Mi\",\"timeout\":10,"
                         "\"processes\":16,\"output\":1000,\"openFiles\":64}}");
    assert_int_equal(process_exec_from_json(*state, body, &request, &err), 0);
    assert_int_equal(request.exec.limits.memory_bytes, 256 << 20);
    assert_int_equal(request.exec.limits.time_ms, 10000);
    assert_int_equal(request.exec.limits.processes, 16);
    assert_int_equal(request.exec.limits.output_bytes, 1000);
    assert_int_equal(request.exec.limits.open_files, 64);
    assert_int_equal(request.exec.timeout_ms, 0);

    static const struct command_limits none;
    static const char *const empty[] = {"{\"command\":\"make\"}",
                                        "{\"command\":\"make\",\"limits\":null}",
                                        "{\"command\":\"make\",\"limits\":{}}",
                                        "{\"command\":\"make\",\"limits\":{\"memory\":null}}"};
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        body = value_of(*state, empty[i]);
        assert_int_equal(process_exec_from_json(*state, body, &request, &err), 0);
        assert_memory_equal(&request.exec.limits, &none, sizeof(none));
    }
}

static void a_program_and_its_arguments(void **state)
{
    static const char words[] = "printf\0%s\0\0a b;c\0";
    struct process_request request;
    struct error err;
    yyjson_val *body = value_of(*state, "{\"command\":[\"printf\",\"%s\",\"\",\"a b;c\"]}");
    assert_int_equal(process_exec_from_json(*state, body, &request, &err), 0);
    assert_null(request.exec.command);
    assert_int_equal(request.exec.argv.len, sizeof(words) - 1);
    assert_memory_equal(request.exec.argv.data, words, sizeof(words) - 1);
}

static void exec_requests_refused(void **state)
{
    static const struct {
        const char *body;
        enum error_code code;
        const char *names;
    } rows[] = {
        {"{}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":\"\"}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":null}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":5}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":{}}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":[]}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":\"a\",\"limits\":5}", ERROR_INVALID_ARGUMENT, "limits"},
        {"{\"command\":\"a\",\"limits\":{\"x\":1}}", ERROR_UNKNOWN_FIELD, "\"x\""},
        {"{\"command\":\"a\",\"limits\":{\"memory\":\"1Mi\"}}", ERROR_INVALID_QUANTITY,
         "limits.memory"},
        {"{\"command\":\"a\",\"limits\":{\"memory\":\"-1Gi\"}}", ERROR_INVALID_QUANTITY,
         "limits.memory"},
        {"{\"command\":\"a\",\"limits\":{\"output\":\"0\"}}", ERROR_INVALID_QUANTITY,
         "limits.output"},
        {"{\"command\":\"a\",\"limits\":{\"processes\":0}}", ERROR_INVALID_ARGUMENT,
         "limits.processes"},
        {"{\"command\":\"a\",\"limits\":{\"openFiles\":3}}", ERROR_INVALID_ARGUMENT,
         "limits.openFiles"},
        {"{\"command\":\"a\",\"limits\":{\"timeout\":1.5}}", ERROR_INVALID_ARGUMENT,
         "limits.timeout"},
        {"{\"command\":[\"\"]}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":[\"ls\",1]}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":[\"ls\",null]}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":[[\"ls\"]]}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":[\"ls\",\"a\\u0000b\"]}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":\"a\\u0000b\"}", ERROR_INVALID_ARGUMENT, "command"},
        {"{\"command\":\"ls\",\"timeout\":-1}", ERROR_INVALID_ARGUMENT, "timeout"},
        {"{\"command\":\"ls\",\"timeout\":1.5}", ERROR_INVALID_ARGUMENT, "timeout"},
        {"{\"command\":\"ls\",\"timeout\":\"5\"}", ERROR_INVALID_ARGUMENT, "timeout"},
        {"{\"command\":\"ls\",\"timeout\":1e300}", ERROR_INVALID_ARGUMENT, "timeout"},
        {"{\"command\":\"ls\",\"waitForCompletion\":1}", ERROR_INVALID_ARGUMENT,
         "waitForCompletion"},
        {"{\"command\":\"ls\",\"workingDir\":\"a\"}", ERROR_INVALID_PATH, "workingDir"},
        {"{\"command\":\"ls\",\"workingDir\":\"\"}", ERROR_INVALID_PATH, "workingDir"},
        {"{\"command\":\"ls\",\"workingDir\":\"/../x\"}", ERROR_INVALID_PATH, "workingDir"},
        {"{\"command\":\"ls\",\"env\":{\"A\":1}}", ERROR_INVALID_ARGUMENT, "env.A"},
        {"{\"command\":\"ls\",\"env\":[]}", ERROR_INVALID_ARGUMENT, "env"},
        {"{\"command\":\"ls\",\"waitForPorts\":[80, 0]}", ERROR_INVALID_ARGUMENT,
         "waitForPorts[1]"},
        {"{\"command\":\"ls\",\"waitForPorts\":[65536]}", ERROR_INVALID_ARGUMENT,
         "waitForPorts[0]"},
        {"{\"command\":\"ls\",\"waitForPorts\":[\"80\"]}", ERROR_INVALID_ARGUMENT,
         "waitForPorts[0]"},
        {"{\"command\":\"ls\",\"stdin\":1}", ERROR_INVALID_ARGUMENT, "stdin"},
        {"{\"command\":\"ls\",\"keepAlive\":1}", ERROR_INVALID_ARGUMENT, "keepAlive"},
        {"{\"command\":\"ls\",\"maxRestarts\":-2}", ERROR_INVALID_ARGUMENT, "maxRestarts"},
        {"{\"command\":\"ls\",\"name\":\"\"}", ERROR_INVALID_NAME, "name"},
        {"{\"command\":\"ls\",\"name\":\"123\"}", ERROR_INVALID_NAME, "pid"},
        {"{\"command\":\"ls\",\"name\":\"a/b\"}", ERROR_INVALID_NAME, "name"},
        {"{\"command\":\"ls\",\"name\":\"..\"}", ERROR_INVALID_NAME, "name"},
        {"{\"command\":\"ls\",\"name\":\"-x\"}", ERROR_INVALID_NAME, "name"},
        {"{\"command\":\"ls\",\"name\":\"a\\u0000\"}", ERROR_INVALID_ARGUMENT, "name"},
        {"{\"Command\":\"ls\"}", ERROR_UNKNOWN_FIELD, "Command"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct process_request request;
        struct error err = {0};
        print_message("%s\n", rows[i].body);
        assert_int_equal(
            process_exec_from_json(*state, value_of(*state, rows[i].body), &request, &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, rows[i].names));
    }
}

static void a_command_has_a_limit(void **state)
{
    char *body = arena_alloc(*state, COMMAND_MAX + 64);
    struct process_request request;
    struct error err = {0};
    for (int over = 0; over <= 1; over++) {
        char *at = stpcpy(body, "{\"command\":\"");
        memset(at, 'x', COMMAND_MAX + over);
        stpcpy(at + COMMAND_MAX + over, "\"}");
        assert_int_equal(process_exec_from_json(*state, value_of(*state, body), &request, &err),
                         -over);
    }
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
}

static void no_body_is_no_command(void **state)
{
    struct process_request request;
    struct error err = {0};
    assert_int_equal(process_exec_from_json(*state, NULL, &request, &err), -1);
    assert_int_equal(err.code, ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        api_test(ended_process),
        api_test(running_process),
        api_test(every_end_has_a_status),
        api_test(output_as_it_is),
        api_test(dropped_output_is_marked),
        api_test(binary_output_is_there_twice),
        api_test(exec_request_whole),
        api_test(exec_request_least),
        api_test(exec_request_with_everything),
        api_test(exec_request_with_limits),
        api_test(a_program_and_its_arguments),
        api_test(exec_requests_refused),
        api_test(a_command_has_a_limit),
        api_test(no_body_is_no_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
