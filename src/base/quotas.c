/* SPDX-License-Identifier: Apache-2.0 */

/* The table of quota kinds, reading their values and telling people about them. */

#include "base/quotas.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/quantity.h"

const struct quota_kind quota_kinds[QUOTA_COUNT] = {
#define X(kind, name, unit, value, min, max, text)                                                 \
    [QUOTA_##kind] = {name, QUOTA_UNIT_##unit, value, min, max},
    QUOTAS(X)
#undef X
};

static const struct {
    const char *text;
    int (*parse)(const char *text, uint64_t *ret_value, struct error *err);
} units[] = {
    [QUOTA_UNIT_COUNT] = {"count", quantity_count},
    [QUOTA_UNIT_CORES] = {"cores", quantity_cpu},
    [QUOTA_UNIT_BYTES] = {"bytes", quantity_bytes},
};

const char *quota_unit_text(enum quota_unit unit)
{
    return units[unit].text;
}

void quotas_default(struct quotas *ret_quotas)
{
    for (int i = 0; i < QUOTA_COUNT; i++)
        ret_quotas->of[i] = quota_kinds[i].fallback;
}

static int no_such_kind(const char *name, struct error *err)
{
    struct buf names = BUF_INIT(512);
    for (int i = 0; i < QUOTA_COUNT; i++)
        buf_addf(&names, "%s%s",
                 i == 0                 ? ""
                 : i == QUOTA_COUNT - 1 ? " or "
                                        : ", ",
                 quota_kinds[i].name);
    error_set(err, ERROR_INVALID_ARGUMENT, "\"%.40s\" is not %s", name, names.data);
    buf_release(&names);
    return -1;
}

static int set_kind(struct quotas *quotas, enum quota kind, const char *value, struct error *err)
{
    const struct quota_kind *row = &quota_kinds[kind];
    char least[QUOTA_TEXT_SIZE], most[QUOTA_TEXT_SIZE];
    uint64_t number = 0;
    if (strcmp(value, "off") != 0 && (units[row->unit].parse(value, &number, NULL) < 0 ||
                                      number < row->min || number > row->max)) {
        quota_amount(row->unit, row->min, least);
        quota_amount(row->unit, row->max, most);
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s: \"%.40s\" is not from %s%s%s, or off",
                         row->name, value, least, row->max == INT64_MAX ? " up" : " to ",
                         row->max == INT64_MAX ? "" : most);
    }
    quotas->of[kind] = number;
    return 0;
}

int quotas_set(struct quotas *quotas, const char *name, const char *value, struct error *err)
{
    for (int i = 0; i < QUOTA_COUNT; i++)
        if (strcmp(quota_kinds[i].name, name) == 0)
            return set_kind(quotas, (enum quota)i, value, err);
    return no_such_kind(name, err);
}

void quota_amount(enum quota_unit unit, uint64_t value, char text[QUOTA_TEXT_SIZE])
{
    static const struct {
        const char *unit;
        int shift;
    } sizes[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
    if (unit == QUOTA_UNIT_CORES) {
        snprintf(text, QUOTA_TEXT_SIZE, "%.10g cores", (double)value / 1000);
        return;
    }
    for (size_t i = 0; unit == QUOTA_UNIT_BYTES && i < ARRAY_LEN(sizes); i++)
        if (value >> sizes[i].shift > 0) {
            snprintf(text, QUOTA_TEXT_SIZE, "%.4g %s",
                     (double)value / (double)(UINT64_C(1) << sizes[i].shift), sizes[i].unit);
            return;
        }
    snprintf(text, QUOTA_TEXT_SIZE, "%" PRIu64 "%s", value,
             unit == QUOTA_UNIT_BYTES && value > 0 ? " bytes" : "");
}

int quota_check(const struct quotas *quotas, enum quota kind, const char *workspace, uint64_t used,
                uint64_t more, enum error_code code, struct error *err)
{
    const struct quota_kind *row = &quota_kinds[kind];
    uint64_t limit = quotas->of[kind];
    char texts[3][QUOTA_TEXT_SIZE];
    if (more == 0 || limit == 0 || (used <= limit && more <= limit - used))
        return 0;
    quota_amount(row->unit, limit, texts[0]);
    quota_amount(row->unit, used, texts[1]);
    quota_amount(row->unit, more, texts[2]);
    return error_set(
        err, code,
        "the workspace \"%s\" has reached its quota \"%s\": the limit is %s, %s are in "
        "use, %s more were asked for",
        workspace, row->name, texts[0], texts[1], texts[2]);
}
