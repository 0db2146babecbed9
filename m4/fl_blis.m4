# FL_CHECK_BLIS: finds blis.h and libblis. Debian puts both in a sub-folder (blis-serial,
# blis-pthread, blis-openmp under the multiarch folders) and ships no pkg-config file.
# --with-blis=DIR takes DIR/include/blis and DIR/lib. Sets BLIS_CFLAGS, BLIS_LIBS and, where the
# newer name of the micro-kernel query exists, HAVE_BLI_CNTX_GET_UKR_DT.
AC_DEFUN([FL_CHECK_BLIS], [
AC_ARG_WITH([blis], [AS_HELP_STRING([--with-blis=DIR], [prefix of BLIS])],, [with_blis=])
AC_MSG_CHECKING([for BLIS])
fl_multi=`$CC -print-multiarch 2>/dev/null`
fl_blis=no
fl_save_CPPFLAGS=$CPPFLAGS; fl_save_LIBS=$LIBS
fl_try="$with_blis"
AS_IF([test -z "$fl_try"], [fl_try="serial pthread openmp plain local"])
for fl_v in $fl_try; do
  AS_CASE([$fl_v],
    [serial|pthread|openmp],
      [fl_i="-I/usr/include/$fl_multi/blis-$fl_v"
       fl_l="/usr/lib/$fl_multi/blis-$fl_v/libblis.so"
       test -f "$fl_l" || continue
       fl_l="-L/usr/lib/$fl_multi/blis-$fl_v -Wl,-rpath,/usr/lib/$fl_multi/blis-$fl_v -lblis"],
    [plain], [fl_i="-I/usr/include/blis"; fl_l="-lblis"],
    [local], [fl_i="-I/usr/local/include/blis"; fl_l="-L/usr/local/lib -lblis"],
    [fl_i="-I$fl_v/include/blis -I$fl_v/include"; fl_l="-L$fl_v/lib -Wl,-rpath,$fl_v/lib -lblis"])
  CPPFLAGS="$fl_save_CPPFLAGS $fl_i"; LIBS="$fl_l $fl_save_LIBS -lm -lpthread"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <blis.h>]],
      [[bli_init(); return bli_gks_query_cntx() == 0;]])],
    [fl_blis="$fl_v"; BLIS_CFLAGS="$fl_i"; BLIS_LIBS="$fl_l"; break])
done
AS_IF([test "$fl_blis" != no],
  [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <blis.h>]],
      [[return bli_cntx_get_ukr_dt(BLIS_FLOAT, BLIS_GEMM_UKR, bli_gks_query_cntx()) == 0;]])],
    [AC_DEFINE([HAVE_BLI_CNTX_GET_UKR_DT], [1], [BLIS has the newer micro-kernel query])])])
CPPFLAGS=$fl_save_CPPFLAGS; LIBS=$fl_save_LIBS
AC_MSG_RESULT([$fl_blis])
AS_IF([test "$fl_blis" = no], [FL_NEED([BLIS], [libblis-serial-dev])])
AC_SUBST([BLIS_CFLAGS])
AC_SUBST([BLIS_LIBS])
])
