/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints every route table, a row a line: dialect, method, path, scopes, flags. Tests in other
 * languages learn from it what there is, so that a new row is tested by everything that concerns
 * all of them.
 */

#include <stdio.h>

#include "api/dialect.h"
#include "auth/auth.h"

static void print_row(const char *dialect, const struct route *route)
{
    char scopes[SCOPES_TEXT_SIZE];
    scopes_text(route->scope, scopes);
    printf("%s\t%s\t%s\t%s\t%s%s%s\n", dialect, route->method, route->path,
           route->scope & SCOPE_PUBLIC ? "public" : scopes,
           route->scope & ROUTE_TOKEN_IN_QUERY ? "query " : "",
           route->scope & ROUTE_FORWARDS ? "forwards " : "",
           route->scope & ROUTE_NAMED_IN_BODY ? "body"
           : route->scope & ROUTE_INSIDE      ? "inside"
           : route->scope & ROUTE_OF_CALLER   ? "caller"
                                              : "");
}

int main(void)
{
    for (size_t i = 0; i < dialect_count; i++)
        for (size_t row = 0; row < *dialects[i]->count; row++)
            print_row(dialects[i]->name, &dialects[i]->routes[row]);
    return 0;
}
