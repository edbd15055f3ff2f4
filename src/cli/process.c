/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella run NAME process …`. exec behaves as the command itself would here: its output on our
 * stdout and stderr, byte for byte and as it comes (live.c), and its exit status as ours.
 */

#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/live.h"
#include "cli/output.h"
#include "cli/table.h"

static void process_target(const struct invocation *inv, struct buf *target, const char *pid,
                           const char *below)
{
    target_sandbox(inv->client, target, args_word(inv->args, "NAME"), "/process");
    if (pid == NULL)
        return;
    buf_addc(target, '/');
    target_add(target, pid, false);
    buf_adds(target, below);
}

/* --- list --- */

static int list_process(const struct invocation *inv, struct table *table, yyjson_val *process,
                        struct error *err)
{
    struct slice command;
    if (client_exact(inv->client, process, "command", &command, err) < 0)
        return -1;
    yyjson_val *exit_code = yyjson_obj_get(process, "exitCode");
    table_printf(table, "%llu",
                 (unsigned long long)yyjson_get_uint(yyjson_obj_get(process, "pid")));
    table_cell(table, client_text(process, "/name"));
    table_cell(table, client_text(process, "/status"));
    if (yyjson_is_int(exit_code))
        table_printf(table, "%lld", (long long)yyjson_get_sint(exit_code));
    else
        table_text(table, NULL);
    table_cell(table, client_text(process, "/startedAt"));
    table_cell(table, command);
    return 0;
}

static int print_processes(const struct invocation *inv, yyjson_val *root, struct error *err)
{
    static const char *const titles[] = {"PID", "NAME", "STATUS", "EXIT", "STARTED", "COMMAND"};
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *process;
    size_t i, count;
    yyjson_arr_foreach(root, i, count, process)
    {
        if (list_process(inv, table, process, err) < 0)
            return -1;
    }
    return output_table(table, err);
}

int verb_process_list(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    process_target(inv, &target, NULL, NULL);
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_processes(inv, root, err);
}

/* --- exec --- */

/* One word is a line for the sandbox's shell; several are a program and its arguments, which no
 * shell is needed for. */
static void add_command(const struct invocation *inv, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    size_t count;
    const char **words = args_rest(inv->args, &count);
    if (count == 1) {
        yyjson_mut_obj_add_str(doc, root, "command", words[0]);
        return;
    }
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "command");
    for (size_t i = 0; i < count; i++)
        yyjson_mut_arr_add_str(doc, list, words[i]);
}

static void add_limits(const struct args *args, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
    static const struct {
        const char *option, *field;
        bool number;
    } rows[] = {{"memory", "memory", false},
                {"processes", "processes", true},
                {"max-output", "output", false},
                {"open-files", "openFiles", true}};
    yyjson_mut_val *limits = NULL;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *text = args_option(args, rows[i].option, NULL);
        if (text == NULL)
            continue;
        if (limits == NULL)
            limits = yyjson_mut_obj_add_obj(doc, root, "limits");
        if (rows[i].number)
            yyjson_mut_obj_add_uint(doc, limits, rows[i].field,
                                    args_number(args, rows[i].option, 0));
        else
            yyjson_mut_obj_add_str(doc, limits, rows[i].field, text);
    }
}

static yyjson_mut_doc *exec_body(const struct invocation *inv)
{
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(inv->client, &root);
    const char *dir = args_option(inv->args, "working-dir", NULL);
    const char *name = args_option(inv->args, "name", NULL);
    add_command(inv, doc, root);
    if (dir != NULL)
        yyjson_mut_obj_add_str(doc, root, "workingDir", dir);
    if (name != NULL)
        yyjson_mut_obj_add_str(doc, root, "name", name);
    if (args_flag(inv->args, "stdin"))
        yyjson_mut_obj_add_bool(doc, root, "stdin", true);
    yyjson_mut_obj_add_bool(doc, root, "waitForCompletion", !args_flag(inv->args, "detach"));
    if (args_flag(inv->args, "timeout"))
        yyjson_mut_obj_add_uint(doc, root, "timeout", args_number(inv->args, "timeout", 0));
    add_limits(inv->args, doc, root);
    client_add_env(inv->client, inv->args, doc, root, "env");
    return doc;
}

/* One stream as raw bytes: what is kept of it. */
static int print_raw(struct invocation *inv, const char *pid, const char *stream, int fd,
                     struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    char piece[16 * 1024];
    int64_t length;
    ssize_t len;
    process_target(inv, &target, pid, "/logs?stream=");
    buf_adds(&target, stream);
    if (client_get_bytes(inv->client, &target, &length, err) < 0)
        return -1;
    while ((len = client_read(inv->client, piece, sizeof(piece), err)) > 0)
        if (output_bytes(fd, piece, (size_t)len, err) < 0)
            return -1;
    return len < 0 ? -1 : 0;
}

/*
 * Both streams of an answer that holds them, byte for byte. Where the server did not keep
 * everything it has put a remark into the text; then the bytes are asked for alone and the remark
 * is ours.
 */
static int print_output(struct invocation *inv, yyjson_val *root, const char *pid,
                        struct error *err)
{
    static const struct {
        const char *key;
        int fd;
    } streams[] = {{"stdout", STDOUT_FILENO}, {"stderr", STDERR_FILENO}};
    yyjson_val *all_dropped = yyjson_obj_get(root, "dropped");
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        struct slice bytes;
        uint64_t dropped = yyjson_get_uint(yyjson_obj_get(all_dropped, streams[i].key));
        if (dropped > 0) {
            fprintf(stderr, "cella: the first %llu bytes of %s were not kept\n",
                    (unsigned long long)dropped, streams[i].key);
            if (print_raw(inv, pid, streams[i].key, streams[i].fd, err) < 0)
                return -1;
        } else if (client_exact(inv->client, root, streams[i].key, &bytes, err) < 0 ||
                   output_bytes(streams[i].fd, bytes.data, bytes.len, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Says why a command ended that did not do so by itself. */
static void explain_end(yyjson_val *process)
{
    static const struct {
        const char *field, *value, *text;
    } reasons[] = {
        {"/status", "stopped", "somebody stopped it"},
        {"/status", "killed", "somebody killed it"},
        {"/reason", "TIMEOUT", "its time was over"},
        {"/reason", "MEMORY_LIMIT", "it took more memory than it may have (MEMORY_LIMIT)"},
        {"/reason", "PROCESS_LIMIT", "it wanted more processes than it may have (PROCESS_LIMIT)"},
        {"/reason", "OUTPUT_LIMIT", "it wrote more than it may write (OUTPUT_LIMIT)"},
    };
    const char *why = NULL;
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (slice_eq(client_text(process, reasons[i].field), slice_of(reasons[i].value)))
            why = reasons[i].text;
    if (yyjson_get_bool(yyjson_obj_get(process, "outOfMemory")))
        why = "the sandbox has no more memory";
    if (why != NULL)
        fprintf(stderr, "cella: the command did not end by itself: %s\n", why);
}

/* With --detach, or when the answer is wanted as JSON: one answer. */
static int exec_whole(struct invocation *inv, const struct buf *target, yyjson_mut_doc *body,
                      int *ret_status, struct error *err)
{
    bool detach = args_flag(inv->args, "detach");
    yyjson_val *root;
    if (client_json(inv->client, "POST", target, body, -1, &root, err) < 0)
        return -1;
    if (!detach)
        *ret_status = (int)(yyjson_get_uint(yyjson_obj_get(root, "exitCode")) & 0xff);
    if (inv->json)
        return output_json(root, err);
    unsigned long long pid = yyjson_get_uint(yyjson_obj_get(root, "pid"));
    return dprintf(STDOUT_FILENO, "%llu\n", pid) < 0 ? error_sys(err, "writing to stdout") : 0;
}

static int show_live(struct invocation *inv, const struct live_request *request, bool quiet,
                     int *ret_status, struct error *err)
{
    struct live_end end;
    if (live_run(inv->client, request, &end, err) < 0)
        return -1;
    *ret_status = (int)(yyjson_get_uint(yyjson_obj_get(end.process, "exitCode")) & 0xff);
    if (end.dropped > 0)
        fprintf(stderr, "cella: %llu bytes of its output were not kept\n",
                (unsigned long long)end.dropped);
    if (!quiet && !end.interrupted)
        explain_end(end.process);
    return 0;
}

int verb_process_exec(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    bool detach = args_flag(inv->args, "detach"), input = args_flag(inv->args, "stdin");
    process_target(inv, &target, NULL, NULL);
    if ((detach || inv->json) && input)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "--stdin needs somebody who stays: it goes with neither --detach nor "
                         "--output json");
    yyjson_mut_doc *body = exec_body(inv);
    if (detach || inv->json)
        return exec_whole(inv, &target, body, ret_status, err);
    return show_live(
        inv,
        &(struct live_request){
            .processes = target.data, .exec = body, .input = input, .stop_on_interrupt = true},
        false, ret_status, err);
}

int verb_process_attach(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    process_target(inv, &target, NULL, NULL);
    return show_live(inv,
                     &(struct live_request){.processes = target.data,
                                            .process = args_word(inv->args, "PID"),
                                            .offset = args_number(inv->args, "from", 0),
                                            .input = args_flag(inv->args, "stdin"),
                                            .hold = true},
                     false, ret_status, err);
}

/* --- one process --- */

int verb_process_logs(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    const char *pid = args_word(inv->args, "PID");
    yyjson_val *root;
    if (args_flag(inv->args, "follow")) {
        int ignored;
        process_target(inv, &target, NULL, NULL);
        return show_live(inv, &(struct live_request){.processes = target.data, .process = pid},
                         true, &ignored, err);
    }
    process_target(inv, &target, pid, "/logs");
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_output(inv, root, pid, err);
}

static int print_ports(yyjson_val *root, struct error *err)
{
    static const char *const titles[] = {"PORT", "PROTOCOL", "ADDRESS"};
    _cleanup_table_ struct table *table = table_new(titles, ARRAY_LEN(titles));
    yyjson_val *port;
    size_t i, count;
    yyjson_arr_foreach(yyjson_obj_get(root, "ports"), i, count, port)
    {
        table_printf(table, "%llu",
                     (unsigned long long)yyjson_get_uint(yyjson_obj_get(port, "localPort")));
        table_cell(table, client_text(port, "/protocol"));
        table_cell(table, client_text(port, "/address"));
    }
    return output_table(table, err);
}

int verb_process_ports(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/network/process/");
    target_add(&target, args_word(inv->args, "PID"), false);
    buf_adds(&target, "/ports");
    if (client_json(inv->client, "GET", &target, NULL, 0, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : print_ports(root, err);
}

static int end_process(struct invocation *inv, const char *method, const char *below,
                       struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    yyjson_val *root;
    process_target(inv, &target, args_word(inv->args, "PID"), below);
    if (client_json(inv->client, method, &target, NULL, -1, &root, err) < 0)
        return -1;
    return inv->json ? output_json(root, err) : output_message(root, err);
}

int verb_process_stop(struct invocation *inv, int *ret_status, struct error *err)
{
    return end_process(inv, "DELETE", "", err);
}

int verb_process_kill(struct invocation *inv, int *ret_status, struct error *err)
{
    return end_process(inv, "POST", "/kill", err);
}
