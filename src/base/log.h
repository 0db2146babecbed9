/* log.h - diagnostics on stderr, "flotilla: ..." one line each. The level is the program's only
 * global setting: -1 quiet (errors only), 0 normal, 1 and more verbose. */
#ifndef FL_BASE_LOG_H
#define FL_BASE_LOG_H

void fl_log_set_level(int level);
int fl_log_level(void);
void fl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fl_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  /* level >= 0 */
void fl_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));  /* level >= 0 */
void fl_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* level >= 1 */

#endif
