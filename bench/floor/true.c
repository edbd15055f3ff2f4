/* SPDX-License-Identifier: Apache-2.0 */
/* The command that is executed everywhere: static, so that what is measured is the way to it. */
int main(void)
{
    return 0;
}
