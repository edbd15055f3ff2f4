/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Security options in and out, by the rows of sandbox/trust.c: an option that is added there can be
 * sent and is shown.
 */

#include "api/v0/security_json.h"

#include <string.h>

#include "api/v0/network_json.h"
#include "auth/auth.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "json/json.h"

/* In answers only: what is there is sent back by those who change one thing of it. */
static const char *const shown_only[] = {"capabilities", "enforcement"};

static bool is_shown_only(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(shown_only); i++)
        if (strcmp(name, shown_only[i]) == 0)
            return true;
    return false;
}

static int unknown(const char *name, struct error *err)
{
    _cleanup_buf_ struct buf known = BUF_INIT(512);
    for (int i = 0; i < TRUST_OPTION_COUNT; i++)
        buf_addf(&known, "%s%s", i > 0 ? ", " : "", trust_rows[i].name);
    return error_set(err, ERROR_UNKNOWN_FIELD,
                     "unknown field \"%.40s\" in spec.security; known: %s", name, known.data);
}

static int refuse(const struct trust_row *row, const char *expected, struct error *err)
{
    return error_set(err, ERROR_INVALID_ARGUMENT, "spec.security.%s must be %s", row->name,
                     expected);
}

static int read_hosts(struct arena *arena, const struct trust_row *row, yyjson_val *value,
                      struct slice *ret_hosts, struct error *err)
{
    if (!yyjson_is_arr(value))
        return refuse(row, "an array of strings", err);
    return network_list_from_json(arena, value, "spec.security.allowed_hosts", ret_hosts, err);
}

/* 0 is none; the bounds are the domain's. */
static int read_number(const struct trust_row *row, yyjson_val *value, uint64_t *ret_value,
                       struct error *err)
{
    double unit = row->kind == TRUST_MILLIS ? 1000 : 1;
    double number = yyjson_get_num(value) * unit;
    if (!yyjson_is_num(value) || !(number >= 0) || number > (double)(UINT64_C(1) << 53) ||
        (row->kind == TRUST_NUMBER && number != (double)(uint64_t)number) ||
        (number > 0 && number < 1))
        return refuse(row,
                      row->kind == TRUST_NUMBER ? "a whole number, not negative"
                                                : "a number, not negative",
                      err);
    *ret_value = (uint64_t)(number + 0.5);
    return 0;
}

static int read_option(struct arena *arena, enum trust_option option, yyjson_val *value,
                       struct trust_request *request, struct error *err)
{
    const struct trust_row *row = &trust_rows[option];
    uint64_t number = 0;
    switch (row->kind) {
    case TRUST_BOOL:
        if (!yyjson_is_bool(value))
            return refuse(row, "true or false", err);
        number = yyjson_get_bool(value);
        break;
    case TRUST_HOSTS:
        if (read_hosts(arena, row, value, &request->hosts, err) < 0)
            return -1;
        break;
    case TRUST_NUMBER:
    case TRUST_MILLIS:
        if (read_number(row, value, &number, err) < 0)
            return -1;
        break;
    }
    trust_set(&request->wanted, option, number);
    request->given |= 1U << option;
    return 0;
}

int security_from_json(struct arena *arena, const char *level, yyjson_val *options,
                       struct trust_request *ret_request, struct error *err)
{
    struct trust_request request = {.level = level, .may_loosen = ret_request->may_loosen};
    yyjson_val *key, *value;
    size_t i, count;
    json_obj_foreach(options, i, count, key, value)
    {
        const char *name = yyjson_get_str(key);
        enum trust_option option = trust_find(name);
        if (option == TRUST_OPTION_COUNT && !is_shown_only(name))
            return unknown(name, err);
        if (option < TRUST_OPTION_COUNT && !yyjson_is_null(value) &&
            read_option(arena, option, value, &request, err) < 0)
            return -1;
    }
    *ret_request = request;
    return 0;
}

bool security_may_loosen(const struct api_call *call)
{
    return (call->principal.scopes & SCOPE_ADMIN) != 0;
}

static void add_option(yyjson_mut_doc *doc, yyjson_mut_val *object, enum trust_option option,
                       uint64_t value, struct slice network)
{
    const struct trust_row *row = &trust_rows[option];
    if (row->kind == TRUST_BOOL)
        yyjson_mut_obj_add_bool(doc, object, row->name, value != 0);
    else if (row->kind == TRUST_HOSTS)
        yyjson_mut_obj_add_val(doc, object, row->name, network_hosts_json(doc, network));
    else if (value == 0)
        yyjson_mut_obj_add_null(doc, object, row->name);
    else if (row->kind == TRUST_NUMBER)
        yyjson_mut_obj_add_uint(doc, object, row->name, value);
    else
        yyjson_mut_obj_add_real(doc, object, row->name, (double)value / 1000);
}

void security_to_json(yyjson_mut_doc *doc, yyjson_mut_val *spec,
                      const struct trust_options *options, struct slice network)
{
    yyjson_mut_obj_add_str(doc, spec, "trustLevel", trust_level_text(options->level));
    yyjson_mut_val *security = yyjson_mut_obj_add_obj(doc, spec, "security");
    yyjson_mut_val *notes = yyjson_mut_obj(doc);
    for (enum trust_option option = 0; option < TRUST_OPTION_COUNT; option++) {
        const char *note = trust_enforcement(options, option);
        add_option(doc, security, option, trust_get(options, option), network);
        if (note != NULL)
            yyjson_mut_obj_add_str(doc, notes, trust_rows[option].name, note);
    }
    yyjson_mut_obj_add_str(doc, security, "capabilities",
                           options->no_capabilities ? "none" : "default");
    if (yyjson_mut_obj_size(notes) > 0)
        yyjson_mut_obj_add_val(doc, security, "enforcement", notes);
}
