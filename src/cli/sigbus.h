/* sigbus.h - what becomes of a process whose mapped file is cut short under it. */
#ifndef FL_CLI_SIGBUS_H
#define FL_CLI_SIGBUS_H

/* From now on SIGBUS ends the process with one sentence that names the file, and status 4. */
void lost_file_catch(void);

#endif
