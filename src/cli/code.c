/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella run NAME code` and `cella code`: code as if an interpreter ran here. What it writes goes
 * to our stdout and stderr as it comes, the value of the last expression to stdout, an error to
 * stderr; the exit status is the run's. The second one asks for one piece of code after the other.
 */

#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "http/client.h"

enum {
    READ_SIZE = 64 * 1024,
    EVENT_MAX = 128 << 20, /* a line of the answer */
};

/* --- what comes back --- */

/* A value that is no text is said to be there; --output json has all of it. */
static int print_result(yyjson_val *event, struct error *err)
{
    static const char *const pictures[] = {"png", "jpeg", "svg", "pdf"};
    _cleanup_buf_ struct buf out = BUF_INIT(EVENT_MAX);
    struct slice text = client_text(event, "/text");
    buf_add(&out, text.data, text.len);
    for (size_t i = 0; i < ARRAY_LEN(pictures); i++)
        if (yyjson_obj_get(event, pictures[i]) != NULL)
            buf_addf(&out, "%s[%s]", out.len > 0 ? " " : "", pictures[i]);
    if (out.len == 0)
        return 0;
    buf_addc(&out, '\n');
    return output_bytes(STDOUT_FILENO, out.data, out.len, err);
}

static int print_error(yyjson_val *event, struct error *err)
{
    struct slice text = client_text(event, "/traceback");
    if (output_bytes(STDERR_FILENO, text.data, text.len, err) < 0)
        return -1;
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        return 0;
    return output_bytes(STDERR_FILENO, "\n", 1, err);
}

static int print_event(yyjson_val *event, int *status, struct error *err)
{
    struct slice type = client_text(event, "/type"), text = client_text(event, "/text");
    if (slice_eq(type, slice_of("stdout")))
        return output_bytes(STDOUT_FILENO, text.data, text.len, err);
    if (slice_eq(type, slice_of("stderr")))
        return output_bytes(STDERR_FILENO, text.data, text.len, err);
    if (slice_eq(type, slice_of("result")))
        return print_result(event, err);
    if (slice_eq(type, slice_of("error")))
        return print_error(event, err);
    if (slice_eq(type, slice_of("end")))
        *status = (int)(yyjson_get_uint(yyjson_obj_get(event, "exitCode")) & 255);
    return 0;
}

/* Its memory goes with it: a run may last for days. */
static int print_line(const struct invocation *inv, struct slice line, int *status,
                      struct error *err)
{
    struct arena *arena = arena_new();
    yyjson_val *event;
    int rc = json_parse(arena, line, &event, err);
    if (rc == 0 && inv->json) {
        _cleanup_buf_ struct buf out = BUF_INIT(EVENT_MAX);
        buf_add(&out, line.data, line.len);
        buf_addc(&out, '\n');
        rc = output_buf(&out, err);
        if (slice_eq(client_text(event, "/type"), slice_of("end")))
            rc = rc < 0 ? rc : print_event(event, status, err);
    } else if (rc == 0) {
        rc = print_event(event, status, err);
    }
    arena_free(arena);
    return rc;
}

static int print_stream(const struct invocation *inv, int *status, struct error *err)
{
    _cleanup_buf_ struct buf in = BUF_INIT(EVENT_MAX);
    for (;;) {
        char *to = buf_reserve(&in, READ_SIZE);
        if (to == NULL)
            return buf_check(&in, "an event", err);
        ssize_t n = client_read(inv->client, to, READ_SIZE, err);
        if (n <= 0)
            return (int)n;
        buf_commit(&in, (size_t)n);
        size_t used = 0;
        for (const char *end; (end = memchr(in.data + used, '\n', in.len - used)) != NULL;) {
            struct slice line = {in.data + used, (size_t)(end - in.data) - used};
            if (print_line(inv, line, status, err) < 0)
                return -1;
            used += line.len + 1;
        }
        buf_consume(&in, used);
    }
}

/* --- running --- */

static int run(const struct invocation *inv, struct slice code, int *status, struct error *err)
{
    static const char *const words[] = {"language", "context"};
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    struct http_answer answer;
    yyjson_mut_val *root;
    yyjson_mut_doc *doc = client_body(inv->client, &root);
    yyjson_mut_obj_add_strn(doc, root, "code", code.data, code.len);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const char *value = args_option(inv->args, words[i], NULL);
        if (value != NULL)
            yyjson_mut_obj_add_str(doc, root, words[i], value);
    }
    if (args_number(inv->args, "timeout", 0) > 0)
        yyjson_mut_obj_add_uint(doc, root, "timeout", args_number(inv->args, "timeout", 0));
    client_add_env(inv->client, inv->args, doc, root, "env");
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/code");
    if (client_stream(inv->client, "POST", &target, doc, "application/x-ndjson", &answer, err) < 0)
        return -1;
    return print_stream(inv, status, err);
}

static int read_all(struct buf *out, struct error *err)
{
    for (;;) {
        char *to = buf_reserve(out, READ_SIZE);
        if (to == NULL)
            return buf_check(out, "the code", err);
        ssize_t n = read(STDIN_FILENO, to, READ_SIZE);
        if (n < 0)
            return error_sys(err, "reading the code");
        if (n == 0)
            return 0;
        buf_commit(out, (size_t)n);
    }
}

int verb_code_run(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf code = BUF_INIT(CODE_SOURCE_MAX + READ_SIZE);
    const char *given = args_word(inv->args, "CODE");
    if (given != NULL && strcmp(given, "-") != 0)
        return run(inv, slice_of(given), ret_status, err);
    if (read_all(&code, err) < 0)
        return -1;
    return run(inv, (struct slice){code.data, code.len}, ret_status, err);
}

/* --- one after the other --- */

/* Whether more has to come: an open bracket, a colon or a backslash at the end, or lines that are
 * indented, which an empty one ends. Strings with brackets in them cost an empty line. */
static bool wants_more(const struct buf *code, const char *line)
{
    int open = 0;
    size_t len = strcspn(line, "\r\n");
    for (size_t i = 0; i < code->len; i++)
        open += strchr("([{", code->data[i]) != NULL   ? 1
                : strchr(")]}", code->data[i]) != NULL ? -1
                                                       : 0;
    if (len == 0)
        return false;
    if (open > 0 || line[len - 1] == ':' || line[len - 1] == '\\')
        return true;
    bool first = code->len <= strlen(line);
    return !first && (line[0] == ' ' || line[0] == '\t');
}

static int ask(struct buf *code, const char *language, bool *ret_end, struct error *err)
{
    _cleanup_free_ char *line = NULL;
    size_t size = 0;
    buf_clear(code);
    for (bool more = false;;) {
        fprintf(stderr, "%s", more ? "... " : strcmp(language, "bash") == 0 ? "$ " : ">>> ");
        if (getline(&line, &size, stdin) < 0) {
            fputc('\n', stderr);
            *ret_end = code->len == 0;
            return 0;
        }
        buf_adds(code, line);
        if (buf_check(code, "the code", err) < 0)
            return -1;
        more = wants_more(code, line);
        if (!more)
            return 0;
    }
}

int verb_code(struct invocation *inv, int *ret_status, struct error *err)
{
    _cleanup_buf_ struct buf code = BUF_INIT(CODE_SOURCE_MAX);
    const char *language = args_option(inv->args, "language", "python");
    if (!isatty(STDIN_FILENO))
        return verb_code_run(inv, ret_status, err);
    for (bool end = false; !end;) {
        struct error why = {0};
        if (ask(&code, language, &end, err) < 0)
            return -1;
        if (end || strspn(code.data, " \t\r\n") == code.len)
            continue;
        if (run(inv, (struct slice){code.data, code.len}, ret_status, &why) == 0)
            continue;
        if (why.code == ERROR_CODE_KERNEL_FAILED || why.code == ERROR_TIMEOUT) {
            output_error(&why); /* the next one may go better */
            continue;
        }
        *err = why;
        return -1;
    }
    *ret_status = 0;
    return 0;
}
