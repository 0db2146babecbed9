/* clock.h - what time it is, and how much memory the process has. */
#ifndef FL_BASE_CLOCK_H
#define FL_BASE_CLOCK_H

#include <stddef.h>

double fl_now_s(void);  /* monotonic seconds */
double fl_wall_s(void); /* seconds since 1970, UTC */

size_t fl_rss_bytes(void);      /* resident now; 0: not known, as the next */
size_t fl_peak_rss_bytes(void); /* at most so far */

#endif
