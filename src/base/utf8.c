/* SPDX-License-Identifier: Apache-2.0 */

/* As Unicode has it: no surrogates, nothing overlong, nothing past U+10FFFF. */

#include "base/utf8.h"

#include <stdbool.h>

#include "base/cleanup.h"

size_t utf8_len(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead, len;
        unsigned least;
    } forms[] = {{0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
    if (text[0] < 0x80)
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if ((text[0] & forms[i].mask) != forms[i].lead)
            continue;
        unsigned point = (unsigned)(text[0] & ~forms[i].mask);
        for (size_t n = 1; n < forms[i].len; n++) {
            if ((text[n] & 0xc0) != 0x80)
                return 0;
            point = point << 6 | (text[n] & 0x3f);
        }
        bool surrogate = point >= 0xd800 && point <= 0xdfff;
        return point < forms[i].least || point > 0x10ffff || surrogate ? 0 : forms[i].len;
    }
    return 0;
}
