/* A program in C or C++ that returns what CALLED does. Nothing but its code comes from its
 * language, so that it needs no library of that. */
#ifdef __cplusplus
extern "C"
#endif
    int CALLED(void);

int main(void) { return CALLED(); }
