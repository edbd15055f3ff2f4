/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sums, and the factors. By default a promise is a ceiling and not a reservation: the sandboxes
 * of agents wait for a model most of the time, and few of them ever come near the ordinary 1 core,
 * 1 GiB and 10 GiB. So the default factors let some thirty of those onto a machine of two cores,
 * 8 GiB and 20 GB, which it holds while they do ordinary work, and no more. An operator who wants
 * every promise to be kept at every moment says --overcommit 1.
 */

#include "sandbox/admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/quantity.h"

#define FACTOR_MAX (UINT64_C(1000000) * 100)

enum { ITEM_MAX = 64 };

/* Cores and the rates are shared moment by moment, and too many promises make everybody slower.
 * Memory that is not there ends processes, so its factor is the lowest, and the one that is reached
 * first. A quota of 10 GiB is generous and most layers stay nearly empty, but stopped sandboxes
 * keep theirs. Of processes 1024 each are promised, of as few as 32768 that there are. */
static const uint64_t default_overcommit[RESOURCE_COUNT] = {
    [RESOURCE_CPU] = 10000,
    [RESOURCE_MEMORY] = 400,
    [RESOURCE_DISK] = 2000,
    [RESOURCE_PIDS] = 1000,
    [RESOURCE_DISK_READ] = 1000,
    [RESOURCE_DISK_WRITE] = 1000,
    [RESOURCE_DISK_READ_OPS] = 1000,
    [RESOURCE_DISK_WRITE_OPS] = 1000,
    [RESOURCE_NETWORK_IN] = 1000,
    [RESOURCE_NETWORK_OUT] = 1000,
    [RESOURCE_MEMORY_BANDWIDTH] = 1000,
};

void admission_init(struct admission *admission, int data_dir_fd)
{
    *admission = (struct admission){0};
    machine_detect(&admission->machine, data_dir_fd);
    memcpy(admission->overcommit, default_overcommit, sizeof(default_overcommit));
    admission->disk_free = admission->machine.total[RESOURCE_DISK];
}

/* ---- factors ---- */

static int parse_factor(const char *text, uint64_t *ret_hundredths, struct error *err)
{
    /* Decimal digits with a point, as a quantity without a unit: thousandths, exactly. */
    uint64_t thousandths;
    if (strspn(text, "0123456789.") != strlen(text) || quantity_cpu(text, &thousandths, NULL) < 0 ||
        thousandths < 10 || thousandths / 10 > FACTOR_MAX)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.40s\" is not a factor between 0.01 and 1000000", text);
    *ret_hundredths = thousandths / 10;
    return 0;
}

static int set_factor(uint64_t factors[RESOURCE_COUNT], const char *item, struct error *err)
{
    const char *eq = strchr(item, '=');
    uint64_t factor = 0;
    if (eq == NULL) {
        if (parse_factor(item, &factor, err) < 0)
            return -1;
        for (int i = 0; i < RESOURCE_COUNT; i++)
            factors[i] = factor;
        return 0;
    }
    enum resource found = resource_find(item, (size_t)(eq - item));
    if (found == RESOURCE_COUNT)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "\"%.*s\" is no resource: cpu, memory, disk, …", (int)(eq - item), item);
    return parse_factor(eq + 1, &factors[found], err);
}

int admission_set_overcommit(struct admission *admission, const char *text, struct error *err)
{
    uint64_t factors[RESOURCE_COUNT];
    memcpy(factors, admission->overcommit, sizeof(factors));
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, ",");
        char item[ITEM_MAX];
        if (len >= sizeof(item))
            return error_set(err, ERROR_INVALID_ARGUMENT, "\"%.60s\" is too long", at);
        memcpy(item, at, len);
        item[len] = '\0';
        if (set_factor(factors, item, err) < 0)
            return -1;
        at += len + (at[len] == ',');
    }
    memcpy(admission->overcommit, factors, sizeof(factors));
    return 0;
}

/* ---- sums ---- */

uint64_t admission_capacity(const struct admission *admission, enum resource resource)
{
    unsigned __int128 capacity = (unsigned __int128)admission->machine.total[resource] *
                                 admission->overcommit[resource] / 100;
    return capacity > INT64_MAX ? INT64_MAX : (uint64_t)capacity;
}

uint64_t admission_free(const struct admission *admission, enum resource resource)
{
    uint64_t capacity = admission_capacity(admission, resource);
    uint64_t promised = admission->promised[resource];
    return promised < capacity ? capacity - promised : 0;
}

static uint64_t part(enum promise_kind kind, const struct spec_limits *limits, int resource)
{
    bool counts = kind == PROMISE_ALL || (kind == PROMISE_DISK && resource == (int)RESOURCE_DISK);
    return counts ? limits->of[resource] : 0;
}

void admission_amount(enum resource resource, uint64_t value, char text[AMOUNT_TEXT_SIZE])
{
    static const bool is_count[RESOURCE_COUNT] = {
        [RESOURCE_PIDS] = true, [RESOURCE_DISK_READ_OPS] = true, [RESOURCE_DISK_WRITE_OPS] = true};
    enum quota_unit unit = resource == RESOURCE_CPU ? QUOTA_UNIT_CORES
                           : is_count[resource]     ? QUOTA_UNIT_COUNT
                                                    : QUOTA_UNIT_BYTES;
    quota_amount(unit, value, text);
    size_t len = strlen(text);
    snprintf(text + len, AMOUNT_TEXT_SIZE - len, "%s", resource >= RESOURCE_DISK_READ ? "/s" : "");
}

static void describe_lack(const struct admission *a, enum resource resource, uint64_t more,
                          struct buf *text)
{
    char asked[AMOUNT_TEXT_SIZE], left[AMOUNT_TEXT_SIZE], total[AMOUNT_TEXT_SIZE],
        promised[AMOUNT_TEXT_SIZE];
    admission_amount(resource, more, asked);
    admission_amount(resource, admission_free(a, resource), left);
    admission_amount(resource, a->machine.total[resource], total);
    admission_amount(resource, a->promised[resource], promised);
    buf_addf(
        text,
        "%s%s: %s asked for, %s free (the machine has %s, --overcommit allows %.10g times that, %s "
        "promised)",
        text->len > 0 ? "; " : "", resource_name(resource), asked, left, total,
        (double)a->overcommit[resource] / 100, promised);
}

static int refuse(const struct admission *a, const uint64_t more[RESOURCE_COUNT], struct error *err)
{
    struct buf text = BUF_INIT(ERROR_MESSAGE_MAX * 4);
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (more[i] > admission_free(a, (enum resource)i))
            describe_lack(a, (enum resource)i, more[i], &text);
    error_set(err, ERROR_INSUFFICIENT_RESOURCES, "not enough %s", text.data);
    buf_release(&text);
    return -1;
}

static int check_more(const struct admission *a, const uint64_t more[RESOURCE_COUNT],
                      struct error *err)
{
    for (int i = 0; i < RESOURCE_COUNT; i++)
        if (more[i] > 0 && more[i] > admission_free(a, (enum resource)i))
            return refuse(a, more, err);
    return 0;
}

void admission_count(struct admission *admission, struct promise *promise, enum promise_kind kind,
                     const struct spec_limits *limits)
{
    const struct spec_limits kept = *limits; /* it may be the promise's own */
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        uint64_t change = part(kind, &kept, i) - part(promise->kind, &promise->limits, i);
        admission->promised[i] += change; /* modulo 2^64: it may be less */
        if (promise->tenant != NULL)
            promise->tenant->promised[i] += change;
    }
    promise->kind = kind;
    promise->limits = kept;
}

static int check_quotas(const struct admission *a, const struct tenant *tenant,
                        const uint64_t more[RESOURCE_COUNT], struct error *err)
{
    for (int i = 0; tenant != NULL && i < RESOURCE_COUNT; i++) {
        enum quota kind = quota_of_resource((enum resource)i);
        if (kind != QUOTA_COUNT && tenant_check(&a->tenants, tenant, kind, more[i], err) < 0)
            return -1;
    }
    return 0;
}

int admission_check(const struct admission *admission, const struct promise *promise,
                    enum promise_kind kind, const struct spec_limits *limits, struct error *err)
{
    uint64_t more[RESOURCE_COUNT] = {0};
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        uint64_t had = part(promise->kind, &promise->limits, i), wants = part(kind, limits, i);
        more[i] = wants > had ? wants - had : 0;
    }
    return check_quotas(admission, promise->tenant, more, err) < 0
               ? -1
               : check_more(admission, more, err);
}

int admission_check_single(const struct admission *admission, const struct spec_limits *before,
                           const struct spec_limits *limits, struct error *err)
{
    static const enum resource bounded[] = {RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_DISK,
                                            RESOURCE_PIDS};
    for (size_t i = 0; i < ARRAY_LEN(bounded); i++) {
        enum resource r = bounded[i];
        uint64_t has = admission->machine.total[r];
        /* What others leave of the disk changes by itself. A limit that was possible a moment ago,
         * as the default is, must not be refused for that: what is free is checked elsewhere. */
        if (r == RESOURCE_DISK && admission->machine.disk_most > has)
            has = admission->machine.disk_most;
        char asked[AMOUNT_TEXT_SIZE], all[AMOUNT_TEXT_SIZE];
        if (limits->of[r] <= has || (before != NULL && limits->of[r] <= before->of[r]))
            continue;
        admission_amount(r, limits->of[r], asked);
        admission_amount(r, has, all);
        return error_set(err, ERROR_INSUFFICIENT_RESOURCES,
                         "%s: %s asked for, the machine has %s, and no single sandbox can have "
                         "more than that",
                         resource_name(r), asked, all);
    }
    return 0;
}

int admission_reserve(struct admission *admission, struct promise *promise, enum promise_kind kind,
                      const struct spec_limits *limits, struct error *err)
{
    if (admission_check(admission, promise, kind, limits, err) < 0)
        return -1;
    admission_count(admission, promise, kind, limits);
    return 0;
}

void admission_shrink(struct admission *admission, struct promise *promise)
{
    if (promise->kind == PROMISE_ALL)
        admission_count(admission, promise, PROMISE_DISK, &promise->limits);
}

void admission_release(struct admission *admission, struct promise *promise)
{
    admission_count(admission, promise, PROMISE_NONE, &promise->limits);
}
