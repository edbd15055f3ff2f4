/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"

static void other_programs_chains(void **state)
{
    static const struct {
        const char *ruleset, *table, *chain; /* NULL: none that drops */
        bool docker, excepted;
    } rows[] = {
        {"", NULL, NULL, false, false},
        {"table", NULL, NULL, false, false},
        {"table ip x {\n\tchain f {\n\t\ttype filter hook forward priority 0; policy accept;\n",
         NULL, NULL, false, false},
        {"table ip x {\n\tchain i {\n\t\ttype filter hook input priority 0; policy drop;\n", NULL,
         NULL, false, false},
        {"table inet cella_ab {\n\tchain f {\n\t\ttype filter hook forward priority 0; policy "
         "drop;\n",
         NULL, NULL, false, false},
        {"table ip6 filter {\n\tchain FORWARD {\n\t\ttype filter hook forward priority 0; policy "
         "drop;\n",
         NULL, NULL, false, false},
        {"table inet fw {\n\tchain pass {\n\t\ttype filter hook forward priority filter + 10; "
         "policy drop;\n\t}\n}\n",
         "inet fw", "pass", false, false},
        {"table ip filter {\n\tchain DOCKER-USER {\n\t}\n\n\tchain FORWARD {\n"
         "\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n",
         "ip filter", "FORWARD", true, false},
        {"table ip filter {\n\tchain DOCKER-USER {\n"
         "\t\tiifname \"cellaup*\" counter packets 0 bytes 0 accept\n\t}\n\n\tchain FORWARD {\n"
         "\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n",
         "ip filter", "FORWARD", true, true},
        /* What our own table says of the interface is no exception of theirs. */
        {"table inet cella_ab {\n\tchain x {\n\t\tiifname \"cellaupab\" accept\n\t}\n}\n"
         "table ip filter {\n\tchain FORWARD {\n"
         "\t\ttype filter hook forward priority filter; policy drop;",
         "ip filter", "FORWARD", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct forward_drop drop;
        assert_int_equal(forward_drop_find(rows[i].ruleset, &drop), rows[i].chain != NULL);
        if (rows[i].chain == NULL)
            continue;
        assert_string_equal(drop.table, rows[i].table);
        assert_string_equal(drop.chain, rows[i].chain);
        assert_int_equal(drop.docker, rows[i].docker);
        assert_int_equal(drop.excepted, rows[i].excepted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_programs_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
