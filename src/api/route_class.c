/* SPDX-License-Identifier: Apache-2.0 */

/* Classes as a row has them, and as text. */

#include "api/route_class.h"

#include <string.h>

#include "auth/auth.h"

static const char *const names[] = {
#define X(name, text, what) [ROUTE_CLASS_##name] = text,
    ROUTE_CLASSES(X)
#undef X
};

enum route_class route_class(const struct route *route)
{
    unsigned said = route == NULL ? 0 : (route->scope >> ROUTE_CLASS_SHIFT) & 15;
    if (said > 0)
        return (enum route_class)(said - 1);
    if (route == NULL || (route->scope & SCOPE_READ) != 0 || strcmp(route->method, "GET") == 0)
        return ROUTE_CLASS_READ;
    return ROUTE_CLASS_WRITE;
}

const char *route_class_name(enum route_class class)
{
    return names[class];
}

enum route_class route_class_parse(struct slice name)
{
    int class = 0;
    while (class < ROUTE_CLASS_COUNT && !slice_eq(name, slice_of(names[class])))
        class ++;
    return (enum route_class) class;
}
