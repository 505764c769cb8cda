/* Files in a program: BC_EMBED(name, "path") defines `const char name[]`, without a terminating
 * zero, and `const size_t name_bytes`. Declare both as extern.
 *
 * The assembler copies the file: a compiler would need minutes and much memory for a large array.
 * Paths are relative to the root of the sources, as all compilers are started there. The Makefile
 * must name the file as a source of the object. */
#ifndef BC_FORMATS_BASE_EMBED_H
#define BC_FORMATS_BASE_EMBED_H

#if __SIZEOF_SIZE_T__ == 8
#define BC_EMBED_SIZE ".quad "
#else
#define BC_EMBED_SIZE ".long "
#endif

#define BC_EMBED(name, path)                                                                  \
	__asm__(".pushsection .rodata\n"                                                      \
		".globl " #name "\n"                                                          \
		".type " #name ", %object\n" #name ":\n"                                      \
		".incbin \"" path "\"\n"                                                      \
		".L" #name "_end:\n"                                                          \
		".size " #name ", .L" #name "_end - " #name "\n"                              \
		".balign 8\n"                                                                 \
		".globl " #name "_bytes\n"                                                    \
		".type " #name "_bytes, %object\n" #name "_bytes:\n" BC_EMBED_SIZE ".L" #name \
		"_end - " #name "\n"                                                          \
		".size " #name "_bytes, . - " #name "_bytes\n"                                \
		".popsection\n")

#endif
