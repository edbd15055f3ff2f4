/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Docker's notation. The number is kept as two integers, before and behind the point, so that
 * nothing goes through floating point: what is behind counts in billionths, which is as exact as
 * Docker itself takes it.
 */

#include "api/aisandbox/docker_units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

enum {
    TEXT_MAX = 40, /* characters that are looked at; nobody writes more */
    FRACTION_DIGITS = 9,
};

#define BILLION UINT64_C(1000000000)

struct number {
    uint64_t whole;
    uint64_t billionths; /* below BILLION */
};

static const char memory_example[] = "\"512m\" or \"1.5g\"";
static const char cpus_example[] = "\"0.5\" or \"2\"";

static int refuse(const char *text, const char *what, const char *why, const char *example,
                  struct error *err)
{
    return error_set(err, ERROR_INVALID_QUANTITY, "\"%.*s\" is not %s: %s; write for example %s",
                     TEXT_MAX, text, what, why, example);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Where it ends; NULL: there is no number, or it is too large or too fine. */
static const char *scan(const char *p, struct number *ret)
{
    struct number number = {0, 0};
    uint64_t unit = BILLION;
    if (!is_digit(*p))
        return NULL;
    for (; is_digit(*p); p++)
        if (__builtin_mul_overflow(number.whole, 10, &number.whole) ||
            __builtin_add_overflow(number.whole, (uint64_t)(*p - '0'), &number.whole) ||
            number.whole > INT64_MAX)
            return NULL;
    if (*p == '.' && is_digit(p[1]))
        for (p++; is_digit(*p); p++) {
            if (unit == 1)
                return NULL;
            unit /= 10;
            number.billionths += (uint64_t)(*p - '0') * unit;
        }
    *ret = number;
    return p;
}

/* number × factor, rounded up. false: it does not fit into 63 bits. */
static bool times(const struct number *number, uint64_t factor, uint64_t *ret)
{
    unsigned __int128 all = (unsigned __int128)number->whole * factor;
    all += ((unsigned __int128)number->billionths * factor + BILLION - 1) / BILLION;
    if (all > INT64_MAX)
        return false;
    *ret = (uint64_t)all;
    return true;
}

/* The power of 1024 that a suffix stands for; -1: it is none. */
static int power_of(const char *suffix)
{
    static const char letters[] = "kmgtp";
    char c = (char)(*suffix | 0x20);
    const char *found = *suffix == '\0' ? NULL : strchr(letters, c);
    int power = 0;
    if (found != NULL && *found != '\0') {
        power = (int)(found - letters) + 1;
        suffix++;
        if ((suffix[0] | 0x20) == 'i' && (suffix[1] | 0x20) == 'b')
            suffix++;
    }
    if ((*suffix | 0x20) == 'b')
        suffix++;
    return *suffix == '\0' ? power : -1;
}

int docker_memory(const char *text, uint64_t *ret_bytes, struct error *err)
{
    static const char what[] = "an amount of memory";
    struct number number;
    if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
        return refuse(text, what, "it is too long", memory_example, err);
    const char *suffix = scan(text, &number);
    if (suffix == NULL)
        return refuse(text, what, "it does not begin with a number that can be counted in",
                      memory_example, err);
    int power = power_of(suffix);
    if (power < 0)
        return refuse(text, what, "the units are b, k, m, g, t and p", memory_example, err);
    if (number.billionths != 0 && power == 0)
        return refuse(text, what, "there are no parts of a byte", memory_example, err);
    if (!times(&number, UINT64_C(1) << (10 * power), ret_bytes))
        return refuse(text, what, "it is too large", memory_example, err);
    return 0;
}

int docker_cpus(const char *text, uint64_t *ret_millis, struct error *err)
{
    static const char what[] = "a number of cores";
    struct number number;
    const char *end = strnlen(text, TEXT_MAX + 1) > TEXT_MAX ? NULL : scan(text, &number);
    if (end == NULL || *end != '\0')
        return refuse(text, what, "only digits and a point make one", cpus_example, err);
    if (!times(&number, 1000, ret_millis))
        return refuse(text, what, "it is too large", cpus_example, err);
    return 0;
}

/* Hundredths as people write them: 150 is "1.5", 200 is "2". */
static const char *hundredths_text(uint64_t hundredths, const char *unit, struct arena *arena)
{
    uint64_t whole = hundredths / 100, rest = hundredths % 100;
    if (rest == 0)
        return arena_printf(arena, "%" PRIu64 "%s", whole, unit);
    if (rest % 10 == 0)
        return arena_printf(arena, "%" PRIu64 ".%" PRIu64 "%s", whole, rest / 10, unit);
    return arena_printf(arena, "%" PRIu64 ".%02" PRIu64 "%s", whole, rest, unit);
}

const char *docker_memory_text(uint64_t bytes, struct arena *arena)
{
    static const char *const units[] = {"b", "k", "m", "g", "t", "p"};
    size_t power = 0;
    while (power + 1 < ARRAY_LEN(units) && bytes >> (10 * (power + 1)) != 0)
        power++;
    unsigned __int128 unit = (unsigned __int128)1 << (10 * power);
    uint64_t hundredths = (uint64_t)(((unsigned __int128)bytes * 100 + unit - 1) / unit);
    return hundredths_text(hundredths, units[power], arena);
}

const char *docker_cpus_text(double cores, struct arena *arena)
{
    double most = 1e6; /* of a figure that came out of nowhere */
    if (!(cores > 0))
        cores = 0;
    return hundredths_text((uint64_t)((cores < most ? cores : most) * 100 + 0.5), "", arena);
}
