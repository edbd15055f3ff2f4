/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What /etc/hostname and /etc/hosts of a sandbox say, from its first moment on. */

#include <stdint.h>

enum { NAMES_TEXT_MAX = 256 };

void names_hostname(const char *hostname, char out[NAMES_TEXT_MAX]);
void names_resolver(uint32_t address, char out[NAMES_TEXT_MAX]); /* IPv4, host order */
void names_hosts(const char *hostname, char out[NAMES_TEXT_MAX]);
