/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Quantities, exactly. Limits are promises, so nothing here goes through floating point: a number
 * is its decimal digits, a unit is a power of ten or of two, and the result is the digits before
 * the point, rounded up when any digit behind it is not zero.
 *
 * "1.5Gi": the digits are 1 | 5, the unit is 2^30. Powers of ten move the point; powers of two
 * double all digits, one bit at a time, and carry what crosses the point. The text is short (see
 * TEXT_MAX), so this costs next to nothing.
 */

#include "base/quantity.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

enum {
    TEXT_MAX = 64,     /* characters; nobody writes more, and it bounds the arithmetic */
    EXPONENT_MAX = 99, /* two digits, either way */
    POINT_MAX = TEXT_MAX + EXPONENT_MAX + 6, /* digits behind the point, at most */
};

struct unit {
    const char *suffix;
    int tens; /* powers of ten … */
    int twos; /* … and of two */
};

static const struct unit units[] = {
    {"", 0, 0},    {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},   {"G", 9, 0},
    {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

/* What is being measured: how messages call it, a right example, and the power of ten of the result
 * (thousandths of a core). */
struct measure {
    const char *name;
    const char *example;
    int tens;
};

static const struct measure cpu = {"cpu quantity", "\"500m\", \"0.5\" or \"2\"", 3};
static const struct measure bytes = {"size", "\"512Mi\", \"1.5Gi\" or \"1000000\"", 0};
static const struct measure count = {"number", "\"100\" or \"2k\"", 0};
static const struct measure share = {"share", "\"25%\"", 4}; /* 1/10000 of a per cent */

/* digits × 10^tens × 2^twos */
struct number {
    char digits[TEXT_MAX]; /* 0…9, not '0'…'9' */
    int count;
    int tens;
    int twos;
};

static int refuse(const struct measure *measure, const char *text, const char *why,
                  struct error *err)
{
    return error_set(err, ERROR_INVALID_QUANTITY, "\"%.*s\" is not a %s: %s; write for example %s",
                     TEXT_MAX, text, measure->name, why, measure->example);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits with at most one point, which may lead or end them. Returns where they end. */
static const char *scan_digits(const char *p, struct number *ret)
{
    bool point = false;
    for (;; p++) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(*p))
            return p;
        ret->digits[ret->count++] = (char)(*p - '0');
        ret->tens -= point;
    }
}

/* "e9", "E-3": NULL when it is none. A lone "E" is the unit. */
static const char *scan_exponent(const char *p, int *ret_exponent)
{
    if (*p != 'e' && *p != 'E')
        return NULL;
    p++;
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    int exponent = 0;
    if (!is_digit(*p))
        return NULL;
    for (; is_digit(*p); p++)
        if (exponent <= EXPONENT_MAX)
            exponent = exponent * 10 + (*p - '0');
    if (*p != '\0')
        return NULL;
    *ret_exponent = negative ? -exponent : exponent;
    return p;
}

static int parse(const struct measure *measure, const char *text, struct number *ret,
                 struct error *err)
{
    if (text == NULL || text[0] == '\0')
        return error_set(err, ERROR_INVALID_QUANTITY,
                         "an empty text is not a %s; write for example %s", measure->name,
                         measure->example);
    if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
        return refuse(measure, text, "it is too long", err);
    if (text[0] == '-')
        return refuse(measure, text, "it is negative", err);

    struct number number = {.count = 0};
    const char *p = scan_digits(text + (text[0] == '+'), &number);
    if (number.count == 0)
        return refuse(measure, text, "it does not begin with a number", err);

    int exponent;
    if (scan_exponent(p, &exponent) != NULL) {
        if (exponent > EXPONENT_MAX || exponent < -EXPONENT_MAX)
            return refuse(measure, text, "its exponent is out of range", err);
        number.tens += exponent;
        *ret = number;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(p, units[i].suffix) == 0) {
            number.tens += units[i].tens;
            number.twos = units[i].twos;
            *ret = number;
            return 0;
        }
    return refuse(measure, text, "the units are m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei", err);
}

/* Rounds up. False when it does not fit into 63 bits. */
static bool evaluate(const struct number *number, uint64_t *ret)
{
    const uint64_t max = INT64_MAX;
    char behind[POINT_MAX] = {0}; /* digits behind the point */
    int behind_count = 0;
    uint64_t whole = 0;

    /* A point that lies before the first digit or behind the last one is reached over zeros. */
    int point = number->count + number->tens;
    int end = point > number->count ? point : number->count;
    for (int i = point < 0 ? point : 0; i < end; i++) {
        char digit = i >= 0 && i < number->count ? number->digits[i] : 0;
        if (i >= point)
            behind[behind_count++] = digit;
        else if (__builtin_mul_overflow(whole, 10, &whole) || whole > max - (uint64_t)digit)
            return false;
        else
            whole += (uint64_t)digit;
    }
    for (int bit = 0; bit < number->twos; bit++) {
        int carry = 0;
        for (int i = behind_count - 1; i >= 0; i--) {
            int doubled = behind[i] * 2 + carry;
            behind[i] = (char)(doubled % 10);
            carry = doubled / 10;
        }
        if (whole > (max - (uint64_t)carry) / 2)
            return false;
        whole = whole * 2 + (uint64_t)carry;
    }
    for (int i = 0; i < behind_count; i++)
        if (behind[i] != 0) {
            if (whole == max)
                return false;
            whole++;
            break;
        }
    *ret = whole;
    return true;
}

static int quantity(const struct measure *measure, const char *text, uint64_t *ret,
                    struct error *err)
{
    struct number number = {.count = 0};
    if (parse(measure, text, &number, err) < 0)
        return -1;
    number.tens += measure->tens;
    if (!evaluate(&number, ret))
        return refuse(measure, text, "it is too large", err);
    return 0;
}

int quantity_cpu(const char *text, uint64_t *ret_millis, struct error *err)
{
    return quantity(&cpu, text, ret_millis, err);
}

int quantity_bytes(const char *text, uint64_t *ret_bytes, struct error *err)
{
    return quantity(&bytes, text, ret_bytes, err);
}

int quantity_count(const char *text, uint64_t *ret_count, struct error *err)
{
    return quantity(&count, text, ret_count, err);
}

bool quantity_is_share(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && text[len - 1] == '%';
}

int quantity_share(const char *text, uint64_t whole, uint64_t *ret_part, struct error *err)
{
    const uint64_t all = 100 * 10000;
    size_t len = strlen(text);
    char number[TEXT_MAX + 1];
    uint64_t parts;
    if (!quantity_is_share(text) || len > TEXT_MAX)
        return refuse(&share, text, "it does not end with %", err);
    memcpy(number, text, len - 1);
    number[len - 1] = '\0';
    for (const char *p = number; *p != '\0'; p++)
        if (!is_digit(*p) && *p != '.')
            return refuse(&share, text, "only digits and a point stand before the %", err);
    if (quantity(&share, number, &parts, err) < 0)
        return -1;
    if (parts > all)
        return refuse(&share, text, "it is more than all of it", err);
    *ret_part = (uint64_t)((unsigned __int128)whole * parts / all);
    return 0;
}
