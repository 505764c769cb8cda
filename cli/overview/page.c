#include "cli/overview/page.h"

/* The assembler copies the file: a compiler would need minutes and much memory for an array. Paths
 * are relative to the root of the sources, as all compilers are started there. */
#if __SIZEOF_SIZE_T__ == 8
#define SIZE ".quad "
#else
#define SIZE ".long "
#endif

__asm__(".pushsection .rodata\n"
	".globl bc_page_html\n"
	".type bc_page_html, %object\n"
	"bc_page_html:\n"
	".incbin \"build/cli/overview/page.html\"\n"
	".Lpage_end:\n"
	".size bc_page_html, .Lpage_end - bc_page_html\n"
	".balign 8\n"
	".globl bc_page_html_bytes\n"
	".type bc_page_html_bytes, %object\n"
	"bc_page_html_bytes:\n" SIZE ".Lpage_end - bc_page_html\n"
	".size bc_page_html_bytes, . - bc_page_html_bytes\n"
	".popsection\n");
