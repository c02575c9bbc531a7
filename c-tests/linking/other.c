/* Another libsplit, in a program that opens a plugin with a libsplit of its own: it does not split.
 */
int libsplit_copy(void);

int libsplit_copy(void) { return 1; }
