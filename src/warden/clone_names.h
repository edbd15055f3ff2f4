/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A copy calls itself by its own name: /etc/hostname, and the line of /etc/hosts that has the old
 * one. Both only where they still are what a start has made of them; in the layer of a sandbox that
 * has its own ideas about /etc they stay as they are. No failure is one for the copy.
 */
void clone_rename(int layer, const char *hostname);
