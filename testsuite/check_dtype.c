#include "suite.h"
Suite *suite_dtype(void) { return suite_create("dtype"); }
