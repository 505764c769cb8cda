/* Marks a function whose result must be checked: the compiler warns if it is ignored. */
#ifndef BC_FORMATS_BASE_MUST_CHECK_H
#define BC_FORMATS_BASE_MUST_CHECK_H

#define BC_MUST_CHECK __attribute__((warn_unused_result))

#endif
