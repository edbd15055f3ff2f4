/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs at build time: compiles the tables of system calls into BPF programs and prints each as a C
 * array. The programs that load them then need no libseccomp, and loading takes no compilation.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "confine/sandbox_calls.h"
#include "confine/seccomp_row.h"
#include "confine/server_calls.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

#if defined(__x86_64__)
#define AUDIT_ARCH_BUILD AUDIT_ARCH_X86_64
#define FOREIGN_NUMBERS  0x40000000 /* x32, which the filter itself refuses */
#elif defined(__aarch64__)
#define AUDIT_ARCH_BUILD AUDIT_ARCH_AARCH64
#define FOREIGN_NUMBERS  0x40000000
#else
#error "no system call table for this architecture"
#endif

struct table {
    const struct seccomp_row *rows;
    size_t count;
};

#define TABLE(rows)                                                                                \
    {                                                                                              \
        rows, LEN(rows)                                                                            \
    }

static const struct program {
    const char *name;
    unsigned is; /* what rows may name with `only` */
    struct table allowed, absent;
    const struct seccomp_protocols *protocols;
    size_t protocols_count;
    uint32_t otherwise; /* what becomes of all other calls; 0: EPERM */
} programs[] = {
    {"sandbox", SANDBOX_STANDARD, TABLE(sandbox_allowed), TABLE(sandbox_absent), sandbox_protocols,
     LEN(sandbox_protocols)},
    {"sandbox_strict", SANDBOX_STRICT, TABLE(sandbox_allowed), TABLE(sandbox_absent),
     sandbox_protocols, LEN(sandbox_protocols)},
    {"server_absent", 0, {0}, TABLE(server_absent), .otherwise = SCMP_ACT_ALLOW},
    {"cellad", CELLAD, TABLE(server_allowed)},
    {"egress", EGRESS, TABLE(server_allowed)},
    {"git", GIT, TABLE(server_allowed)},
};

static int fail(const char *what, int r)
{
    fprintf(stderr, "seccomp_gen: %s: %s\n", what, strerror(-r));
    return 1;
}

static int add_row(scmp_filter_ctx filter, uint32_t action, const struct seccomp_row *row)
{
    int number = seccomp_syscall_resolve_name(row->name);
    if (number == __NR_SCMP_ERROR && row->number == 0)
        return -ENOSYS; /* a mistake in the table */
    if (number == __NR_SCMP_ERROR)
        number = row->number;
    else if (number < 0)
        return 0; /* another architecture's */
    switch (row->compare) {
    case SECCOMP_ALWAYS:
        return seccomp_rule_add(filter, action, number, 0);
    case SECCOMP_EQ:
        return seccomp_rule_add(filter, action, number, 1,
                                SCMP_CMP(row->arg, SCMP_CMP_EQ, row->value));
    case SECCOMP_NE:
        return seccomp_rule_add(filter, action, number, 1,
                                SCMP_CMP(row->arg, SCMP_CMP_NE, row->value));
    case SECCOMP_INT:
        return seccomp_rule_add(filter, action, number, 1,
                                SCMP_CMP(row->arg, SCMP_CMP_MASKED_EQ, UINT32_MAX, row->value));
    case SECCOMP_MASK_ZERO:
        return seccomp_rule_add(filter, action, number, 1,
                                SCMP_CMP(row->arg, SCMP_CMP_MASKED_EQ, row->value, 0));
    }
    return -EINVAL;
}

static int add_table(scmp_filter_ctx filter, uint32_t action, const struct program *program,
                     const struct table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct seccomp_row *row = &table->rows[i];
        int r = row->only == 0 || (row->only & program->is) ? add_row(filter, action, row) : 0;
        if (r < 0)
            return fail(row->name, r);
    }
    return 0;
}

static int build(scmp_filter_ctx filter, const struct program *program)
{
    int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r < 0)
        return fail("building the filter", r);
    return add_table(filter, SCMP_ACT_ALLOW, program, &program->allowed) != 0 ||
                   add_table(filter, SCMP_ACT_ERRNO(ENOSYS), program, &program->absent) != 0
               ? 1
               : 0;
}

/* libseccomp cannot say "every number from here on", so that comes first, by hand. Numbers of a
 * foreign ABI go on to the filter, which kills. */
static const struct sock_filter newer_calls[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_BUILD, 0, 4),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN_NUMBERS, 2, 0),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SECCOMP_NEWEST, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};

/* The lower half of an argument, on a little-endian machine. */
#define LOAD_ARG(n)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (n))
#define WHEN(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), yes, no)

enum { PROTOCOL_BLOCKS_MAX = 64 };

/* Nor can it say "none of these". Two comparisons of one argument are one too many, so sockets'
 * protocols are looked at by hand, too: a block for each family, which goes on behind itself when
 * the family is another or the protocol is in the list. */
static size_t protocol_blocks(const struct program *program,
                              struct sock_filter code[PROTOCOL_BLOCKS_MAX])
{
    size_t n = 2;
    for (size_t i = 0; i < program->protocols_count; i++) {
        const struct seccomp_protocols *row = &program->protocols[i];
        size_t left = row->count + 2; /* instructions of this block behind its comparison */
        code[n++] = (struct sock_filter)LOAD_ARG(0);
        code[n++] = (struct sock_filter)WHEN(row->family, 0, (uint8_t)left--);
        code[n++] = (struct sock_filter)LOAD_ARG(2);
        for (size_t p = 0; p < row->count; p++)
            code[n++] = (struct sock_filter)WHEN(row->protocols[p], (uint8_t)--left, 0);
        code[n++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    }
    code[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[1] = (struct sock_filter)WHEN(SYS_socket, 0, (uint8_t)(n - 2));
    return n;
}

static void print_instructions(const struct sock_filter *code, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("    {0x%02x, %u, %u, 0x%08x},\n", code[i].code, code[i].jt, code[i].jf, code[i].k);
}

/* libseccomp writes what it has compiled to a file. */
static int compile(scmp_filter_ctx filter, struct sock_filter code[BPF_MAXINSNS], size_t *ret_count)
{
    int fd = memfd_create("filter", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);
    if (r < 0)
        return fail("seccomp_export_bpf", r);
    ssize_t bytes = pread(fd, code, BPF_MAXINSNS * sizeof(code[0]), 0);
    close(fd);
    if (bytes <= 0 || bytes % (ssize_t)sizeof(code[0]) != 0)
        return fail("reading the filter back", -EIO);
    *ret_count = (size_t)bytes / sizeof(code[0]);
    return 0;
}

static int print_program(const struct program *program)
{
    struct sock_filter code[BPF_MAXINSNS];
    struct sock_filter blocks[PROTOCOL_BLOCKS_MAX];
    size_t count, blocks_count = protocol_blocks(program, blocks);
    scmp_filter_ctx filter =
        seccomp_init(program->otherwise != 0 ? program->otherwise : SCMP_ACT_ERRNO(EPERM));
    if (filter == NULL)
        return fail("seccomp_init", -ENOMEM);
    if (build(filter, program) != 0 || compile(filter, code, &count) != 0)
        return 1;
    if (count + LEN(newer_calls) + blocks_count > BPF_MAXINSNS)
        return fail("the filter is too long", -E2BIG);
    printf("static const struct sock_filter seccomp_%s[] = {\n", program->name);
    print_instructions(newer_calls, LEN(newer_calls));
    print_instructions(blocks, blocks_count);
    print_instructions(code, count);
    printf("};\n");
    seccomp_release(filter);
    return 0;
}

int main(void)
{
    printf("/* Made by seccomp_gen from the tables of system calls. */\n");
    for (size_t i = 0; i < LEN(programs); i++)
        if (print_program(&programs[i]) != 0)
            return 1;
    return 0;
}
