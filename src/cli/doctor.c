/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella doctor`: what this machine has and lacks, each with the command that would mend it. People
 * run it when nothing works, so it needs no server, no rights and no data folder.
 */

#include "cli/doctor.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "cli/verbs.h"

static const struct {
    const char *mark, *word;
} levels[] = {
    [FINDING_OK] = {"✓", "ok"},
    [FINDING_WARNING] = {"!", "warning"},
    [FINDING_MISSING] = {"✗", "missing"},
};

static const struct check_row *const all_checks[] = {doctor_kernel_checks, doctor_network_checks,
                                                     doctor_host_checks};

void finding_set(struct finding *finding, enum finding_level level, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    finding->level = level;
    vsnprintf(finding->text, sizeof(finding->text), fmt, args);
    va_end(args);
}

void finding_fix(struct finding *finding, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(finding->fix, sizeof(finding->fix), fmt, args);
    va_end(args);
}

bool doctor_read(const char *path, char *out, size_t size)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, out, size - 1);
    if (len < 0)
        return false;
    out[len] = '\0';
    return true;
}

long long doctor_number(const char *path)
{
    char text[64], *end;
    if (!doctor_read(path, text, sizeof(text)))
        return -1;
    long long value = strtoll(text, &end, 10);
    return end == text ? -1 : value;
}

/* --- showing --- */

static void add_line(struct buf *out, const char *name, const struct finding *finding)
{
    enum { NAME_WIDTH = 20 };
    buf_addf(out, "%s %-*s ", levels[finding->level].mark, NAME_WIDTH, name);
    text_add_plain(out, slice_of(finding->text));
    buf_addc(out, '\n');
    if (finding->fix[0] == '\0')
        return;
    buf_addf(out, "  %*s → ", NAME_WIDTH, "");
    text_add_plain(out, slice_of(finding->fix));
    buf_addc(out, '\n');
}

static void add_object(yyjson_mut_doc *doc, yyjson_mut_val *list, const char *name,
                       const struct finding *finding)
{
    yyjson_mut_val *object = yyjson_mut_arr_add_obj(doc, list);
    yyjson_mut_obj_add_str(doc, object, "name", name);
    yyjson_mut_obj_add_str(doc, object, "status", levels[finding->level].word);
    yyjson_mut_obj_add_strcpy(doc, object, "message", finding->text);
    if (finding->fix[0] != '\0')
        yyjson_mut_obj_add_strcpy(doc, object, "fix", finding->fix);
}

static int print_json(yyjson_mut_doc *doc, struct error *err)
{
    size_t len;
    _cleanup_free_ char *text = yyjson_mut_write(
        doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_ALLOW_INVALID_UNICODE, &len);
    if (text == NULL)
        return error_set(err, ERROR_INTERNAL, "cannot write the findings as JSON");
    if (output_bytes(STDOUT_FILENO, text, len, err) < 0)
        return -1;
    return output_bytes(STDOUT_FILENO, "\n", 1, err);
}

static void cleanup_doc(yyjson_mut_doc **doc)
{
    yyjson_mut_doc_free(*doc);
}

static int check_all(struct invocation *inv, const char *data, int *ret_status, struct error *err)
{
    _cleanup_(cleanup_doc) yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    yyjson_mut_val *root = yyjson_mut_obj(doc), *list = yyjson_mut_arr(doc);
    int missing = 0;
    for (size_t i = 0; i < ARRAY_LEN(all_checks); i++) {
        for (const struct check_row *row = all_checks[i]; row->name != NULL; row++) {
            struct finding finding = {0};
            row->check(data, &finding);
            missing += finding.level == FINDING_MISSING;
            add_line(&out, row->name, &finding);
            add_object(doc, list, row->name, &finding);
        }
    }
    *ret_status = missing > 0 ? 1 : 0;
    if (missing > 0)
        buf_addf(&out, "\nMissing, and needed by sandboxes: %d of the above.\n", missing);
    else
        buf_adds(&out, "\nThis machine can run sandboxes.\n");
    yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_obj_add_bool(doc, root, "ok", missing == 0);
    yyjson_mut_obj_add_val(doc, root, "checks", list);
    return inv->json ? print_json(doc, err) : output_buf(&out, err);
}

int verb_doctor(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *data = settings_data(inv->args);
    if (!args_flag(inv->args, "leaks"))
        return check_all(inv, data, ret_status, err);
    if (inv->json)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--leaks prints lines, not JSON");
    return doctor_leaks(data, ret_status, err);
}
