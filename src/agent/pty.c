/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Opening pseudo-terminals. The sandbox's root may have put anything at /dev/ptmx; the device below
 * /dev/pts is the file system's own, and the other end is asked for by ioctl rather than by path.
 */

#include "agent/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

void pty_resize(int master_fd, unsigned cols, unsigned rows)
{
    struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
    ioctl(master_fd, TIOCSWINSZ, &size);
}

/* Erasing takes away a character, not a byte. */
static void expect_utf8(int tty_fd)
{
    struct termios settings;
    if (tcgetattr(tty_fd, &settings) == 0) {
        settings.c_iflag |= IUTF8;
        tcsetattr(tty_fd, TCSANOW, &settings);
    }
}

int pty_open(uid_t owner, unsigned cols, unsigned rows, struct pty *ret_pty, struct error *err)
{
    const int flags = O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK;
    int unlocked = 0;
    _cleanup_fd_ int master = open("/dev/pts/ptmx", flags);
    if (master < 0)
        master = open("/dev/ptmx", flags);
    if (master < 0 || ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "opening a terminal");
    _cleanup_fd_ int tty = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (tty < 0)
        return error_sys_as(err, ERROR_UNAVAILABLE, "opening a terminal");
    if (owner != geteuid() && fchown(tty, owner, (gid_t)-1) < 0)
        return error_sys(err, "giving a terminal to user %u", (unsigned)owner);
    expect_utf8(tty);
    pty_resize(master, cols, rows);
    *ret_pty = (struct pty){.master_fd = steal_fd(&master), .tty_fd = steal_fd(&tty)};
    return 0;
}
