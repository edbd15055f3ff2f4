/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What programs need of a system besides their own files: libraries, configuration, certificates,
 * time zones, name services. Read-only for the server's processes, by their view of the file system
 * (view.c) and by Landlock (confine.c). What a machine does not have is left out.
 */

static const char *const system_paths[] = {
    "/usr",
    "/bin", /* these are links into /usr on most systems */
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    /* where /etc/resolv.conf may point to, and what name services ask */
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager",
    "/run/connman",
    "/run/netconfig",
    "/run/nscd",
    "/run/avahi-daemon",
    "/var/lib/sss",
    /* where /etc/ssl may point to */
    "/var/lib/ca-certificates",
};
