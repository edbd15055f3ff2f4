/* SPDX-License-Identifier: Apache-2.0 */

/* What a sandbox uses of what it was given. */

#include "api/v0/amounts_json.h"

#include <math.h>

#include "base/timetext.h"
#include "sandbox/capacity.h"

void amount_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                enum resource resource, double value)
{
    if (isnan(value))
        return;
    if (resource == RESOURCE_CPU) /* more digits would be noise */
        yyjson_mut_obj_add_real(doc, object, key, (double)(uint64_t)(value * 10 + 0.5) / 10000);
    else
        yyjson_mut_obj_add_uint(doc, object, key, (uint64_t)value);
}

void percent_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key, double used,
                 double limit)
{
    if (!isnan(used) && limit > 0)
        yyjson_mut_obj_add_real(doc, object, key,
                                (double)(uint64_t)(used / limit * 1000 + 0.5) / 10);
}

void usage_add(yyjson_mut_doc *doc, yyjson_mut_val *object, const struct sandbox_info *info,
               const struct sandboxes *sandboxes)
{
    const struct sandbox_load *load = &info->load;
    const double used[RESOURCE_COUNT] = {
        [RESOURCE_CPU] = load->cpu * 1000,
        [RESOURCE_MEMORY] = load->memory,
        [RESOURCE_DISK] = load->disk,
        [RESOURCE_PIDS] = load->time_ms == 0 ? NAN : (double)load->tasks,
    };
    yyjson_mut_val *usage = yyjson_mut_obj_add_obj(doc, object, "usage");
    if (load->time_ms != 0) {
        char time[TIME_TEXT_SIZE];
        time_rfc3339(load->time_ms, time);
        yyjson_mut_obj_add_strcpy(doc, usage, "timestamp", time);
    }
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        const char *how;
        if (info->limits.of[i] == 0)
            continue;
        yyjson_mut_val *row = yyjson_mut_obj_add_obj(doc, usage, resource_name((enum resource)i));
        double limit = (double)info->limits.of[i];
        amount_add(doc, row, "limit", (enum resource)i, limit);
        if (i <= (int)RESOURCE_PIDS) {
            amount_add(doc, row, "used", (enum resource)i, used[i]);
            percent_add(doc, row, "percent", used[i], limit);
        }
        if (!sandboxes_enforces(sandboxes, (enum resource)i, &how))
            yyjson_mut_obj_add_bool(doc, row, "enforced", false);
        yyjson_mut_obj_add_strcpy(doc, row, "enforcement", how);
    }
}
