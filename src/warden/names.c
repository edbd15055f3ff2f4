/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/names.h"

#include <stdio.h>

void names_hostname(const char *hostname, char out[NAMES_TEXT_MAX])
{
    snprintf(out, NAMES_TEXT_MAX, "%s\n", hostname);
}

void names_hosts(const char *hostname, char out[NAMES_TEXT_MAX])
{
    snprintf(out, NAMES_TEXT_MAX,
             "127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost ip6-loopback\n",
             hostname);
}
