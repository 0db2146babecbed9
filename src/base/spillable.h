/* spillable.h - memory that lies in a file without a name, for what is used now and then: the
 * system may write it out and take its memory for others. It ends with the process. */
#ifndef FL_BASE_SPILLABLE_H
#define FL_BASE_SPILLABLE_H

#include <stddef.h>

/* Zeroed, page-aligned, in a file of folder `dir` whose blocks are reserved. NULL where it cannot
 * be had: less than 16 times that free on the disk, a file system in memory, no right to write. */
void *fl_spillable_new(const char *dir, size_t n_bytes) __attribute__((warn_unused_result));
/* A range of it is not needed for a while: leaves this process's resident memory, with the rest of
 * the pages at its ends; the content stays. */
void fl_spillable_evict_pages(void *p, size_t n_bytes);
void fl_spillable_free(void *p, size_t n_bytes);

#endif
