/* SPDX-License-Identifier: Apache-2.0 */

/* One pass from the end: the last name is what people mean, so letters are looked for there
 * first. */

#include "agent/fuzzy.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
    PLAIN = 10,      /* a letter that fits */
    IN_A_ROW = 15,   /* … right before the one after it */
    WORD_START = 12, /* … behind a slash, dot, dash, underscore, or a change to upper case */
    IN_NAME = 8,     /* … in the last name */
    PERFECT = PLAIN + IN_A_ROW + WORD_START + IN_NAME,
};

static bool starts_word(const char *path, size_t at)
{
    if (at == 0 || strchr("/._- ", path[at - 1]) != NULL)
        return true;
    return isupper((unsigned char)path[at]) && islower((unsigned char)path[at - 1]);
}

uint64_t fuzzy_score(const char *query, const char *path)
{
    size_t length = strlen(path), at = length, letters = 0;
    const char *slash = strrchr(path, '/');
    size_t name = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    uint64_t points = 0;
    bool row = false;
    for (size_t i = strlen(query); i > 0; i--) {
        unsigned char want = (unsigned char)query[i - 1];
        if (isspace(want))
            continue;
        size_t before = at;
        while (at > 0 && tolower((unsigned char)path[at - 1]) != tolower(want))
            at--;
        if (at == 0)
            return 0;
        at--;
        points += PLAIN;
        if (row && before == at + 1)
            points += IN_A_ROW;
        if (starts_word(path, at))
            points += WORD_START;
        if (at >= name)
            points += IN_NAME;
        row = true;
        letters++;
    }
    if (letters == 0)
        return 0;
    uint64_t score = points * 1000 / (letters * PERFECT);
    uint64_t spare = length - letters < 100 ? length - letters : 100;
    score -= score * spare / 500;
    return score < 1 ? 1 : score > 1000 ? 1000 : score;
}
