/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel tells of connections and refused packets: addresses are whole, kinds are known.
 */

#include "egress/kernel_event.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void see(void *ctx, const struct kernel_event *event)
{
    size_t *count = ctx;
    ++*count;
    if (event->kind < KERNEL_CONNECTED || event->kind > KERNEL_REFUSED)
        abort();
    if (event->from.family != NET_IPV4 && event->from.family != NET_IPV6)
        abort();
    if (event->to.family != NET_IPV4 && event->to.family != NET_IPV6)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { SMALLEST = 20 }; /* two headers */
    size_t count = 0;
    kernel_events_read((struct slice){(const char *)data, size}, see, &count);
    if (count > size / SMALLEST)
        abort();
    return 0;
}
