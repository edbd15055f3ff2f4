/* SPDX-License-Identifier: Apache-2.0 */

/* Loads the filter in a child and makes the calls. no_new_privs stands in for CAP_SYS_ADMIN, so
 * that the test needs no privilege. */

#include "confine/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/birth.h"

/* What the call gives under the filter: 0 or its errno; 1000 + signal when it kills. */
static int outcome(enum filter_name filter, long number, long a, long b, long c)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct error err;
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (filter_load(filter, &err) < 0)
            _exit(255);
        long r = syscall(number, a, b, c, 0, 0, 0);
        _exit(r < 0 ? errno : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void the_list_is_in_force(void **state)
{
    enum { STATMOUNT = 457, LISTMOUNT = 458, GETXATTRAT = 464, REMOVEXATTRAT = 466 };
    enum { CLONE3 = 435, IO_URING_SETUP = 425, OPEN_TREE_ATTR = 467, FCHMODAT2 = 452 };
    static const struct {
        long number, a, b, c;
        int expected;
    } rows[] = {
        {SYS_getpid, 0, 0, 0, 0},
        {SYS_read, -1, 0, 0, EBADF},
        {SYS_io_setup, 0, 0, 0, EFAULT},
        {SYS_unshare, CLONE_NEWUSER, 0, 0, EPERM},
        {SYS_setns, -1, 0, 0, EPERM},
        {SYS_mount, 0, 0, 0, EPERM},
        {SYS_umount2, 0, 0, 0, EPERM},
        {SYS_open_tree, -1, 0, 0, EPERM},
        {SYS_fsopen, 0, 0, 0, EPERM},
        {SYS_pivot_root, 0, 0, 0, EPERM},
        {SYS_keyctl, 0, 0, 0, EPERM},
        {SYS_add_key, 0, 0, 0, EPERM},
        {SYS_bpf, 0, 0, 0, EPERM},
        {SYS_perf_event_open, 0, 0, 0, EPERM},
        {SYS_userfaultfd, 0, 0, 0, EPERM},
        {SYS_open_by_handle_at, -1, 0, 0, EPERM},
        {SYS_kexec_load, 0, 0, 0, EPERM},
        {SYS_init_module, 0, 0, 0, EPERM},
        {SYS_reboot, 0, 0, 0, EPERM},
        {SYS_swapon, 0, 0, 0, EPERM},
        {IO_URING_SETUP, 0, 0, 0, EPERM},
        {SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, EPERM},
        {SYS_clone, CLONE_NEWNS | SIGCHLD, 0, 0, EPERM},
        {CLONE3, 0, 0, 0, ENOSYS},
        {CLONE3, 0, 88, 0, ENOSYS},
        {CLONE3, 0, AGENT_CLONE_ARGS_SIZE, 0, EFAULT}, /* the agent's way */
        {FCHMODAT2, -1, 0, 0, EFAULT},
        {OPEN_TREE_ATTR, -1, 0, 0, ENOSYS},
        {999, 0, 0, 0, ENOSYS},
        {SYS_personality, 0xffffffff, 0, 0, 0},
        {SYS_personality, 0x0400000, 0, 0, EPERM},
        {SYS_clone, (1L << 32) | CLONE_NEWUSER | SIGCHLD, 0, 0, EPERM},
        {SYS_socket, AF_VSOCK, SOCK_STREAM, 0, EPERM},
        {SYS_socket, AF_VSOCK + (1L << 32), SOCK_STREAM, 0, EPERM}, /* the kernel sees 40 */
        {SYS_socket, AF_ALG, SOCK_SEQPACKET, 0, EPERM},
        {SYS_socket, AF_PACKET, SOCK_RAW, 0, EPERM},
        {SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0},
        {SYS_socket, AF_UNIX + (1L << 32), SOCK_STREAM, 0, 0},
        {SYS_socket, AF_INET, SOCK_STREAM, 0, 0},
        {SYS_socket, AF_INET6, 0xffff, 0, EINVAL},
        {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, 0},
        {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT, EPROTONOSUPPORT},
        {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, EPROTONOSUPPORT},
        {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER + (1L << 32), EPROTONOSUPPORT},
        {SYS_socket, AF_NETLINK + (1L << 32), SOCK_RAW, NETLINK_NETFILTER, EPROTONOSUPPORT},
        {SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_GENERIC, EPROTONOSUPPORT},
        {SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_TCP, 0},
        {SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_MPTCP, EPROTONOSUPPORT},
        {SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_UDP, 0},
        {SYS_socket, AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE, EPROTONOSUPPORT},
        {SYS_socket, AF_INET, SOCK_RAW, IPPROTO_RAW, EPROTONOSUPPORT},
        {SYS_socket, AF_INET6, SOCK_STREAM, IPPROTO_SCTP, EPROTONOSUPPORT},
        {SYS_socket, AF_INET6, SOCK_DGRAM, IPPROTO_UDP, 0},
        {SYS_socket, AF_PACKET, SOCK_RAW, IPPROTO_TCP, EPERM},
        {LISTMOUNT, 0, 0, 0, EFAULT},
        {STATMOUNT, 0, 0, 0, EFAULT},
        {GETXATTRAT, -1, 0, -1, EINVAL}, /* unknown flags */
        {REMOVEXATTRAT, -1, 0, -1, EINVAL},
        {SYS_socketpair, AF_VSOCK, SOCK_STREAM, 0, EPERM},
        {SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, EFAULT},
#ifdef __x86_64__
        {0x40000000 + SYS_getpid, 0, 0, 0, 1000 + SIGSYS}, /* x32 */
#endif
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int got = outcome(FILTER_SANDBOX, rows[i].number, rows[i].a, rows[i].b, rows[i].c);
        if (got != rows[i].expected)
            fail_msg("call %ld: %d, not %d", rows[i].number, got, rows[i].expected);
    }
}

static void strict_has_no_calls_into_other_processes(void **state)
{
    enum { MEMFD_SECRET = 447 };
    static const struct {
        long number, a, b, c;
        int standard;
    } rows[] = {
        {SYS_ptrace, 0x7fff, 0, 0, ESRCH},
        {SYS_process_vm_readv, 0, 0, -1, EINVAL},
        {SYS_process_vm_writev, 0, 0, -1, EINVAL},
#ifdef __x86_64__
        {SYS_modify_ldt, 0, 0, 0, 0},
#endif
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        long number = rows[i].number;
        assert_int_equal(outcome(FILTER_SANDBOX, number, rows[i].a, rows[i].b, rows[i].c),
                         rows[i].standard);
        assert_int_equal(outcome(FILTER_SANDBOX_STRICT, number, rows[i].a, rows[i].b, rows[i].c),
                         EPERM);
    }
    /* Not every kernel has it. */
    assert_int_not_equal(outcome(FILTER_SANDBOX, MEMFD_SECRET, 0, 0, 0), EPERM);
    assert_int_equal(outcome(FILTER_SANDBOX_STRICT, MEMFD_SECRET, 0, 0, 0), EPERM);
    assert_int_equal(outcome(FILTER_SANDBOX_STRICT, SYS_getpid, 0, 0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_in_force),
        cmocka_unit_test(strict_has_no_calls_into_other_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
