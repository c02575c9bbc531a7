/* A library between a program and libsplit, in C or C++: CALLED is a function in another library,
 * of which FUNCTION returns the result. */
#ifdef __cplusplus
extern "C" {
#endif
int CALLED(void);
int FUNCTION(void);
#ifdef __cplusplus
}
#endif

int FUNCTION(void) { return CALLED(); }
