/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prints the route table, a row a line: method, path, scopes, flags. Tests in other languages learn
 * from it what there is, so that a new row is tested by everything that concerns all of them.
 */

#include <stdio.h>

#include "api/routes.h"
#include "auth/auth.h"

int main(void)
{
    for (size_t i = 0; i < api_route_count; i++) {
        const struct route *route = &api_routes[i];
        char scopes[SCOPES_TEXT_SIZE];
        scopes_text(route->scope, scopes);
        printf("%s\t%s\t%s\t%s%s\n", route->method, route->path,
               route->scope & SCOPE_PUBLIC ? "public" : scopes,
               route->scope & ROUTE_TOKEN_IN_QUERY ? "query " : "",
               route->scope & ROUTE_FORWARDS ? "forwards" : "");
    }
    return 0;
}
