#include "suite.h"
Suite *suite_fza(void) { return suite_create("fza"); }
