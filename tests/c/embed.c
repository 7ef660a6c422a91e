/* Another program with CPython in it: linked with libpython, shared or static.
 *
 * embed SCRIPT ARGUMENTS…     runs the script as __main__, and gives its exit code
 */
#include <Python.h>

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: embed SCRIPT ARGUMENTS...\n");
        return 64;
    }
    setenv("EMBED_ARGUMENTS", argv[1], 1);
    for (int i = 2; i < argc; i++) {
        char *joined = malloc(strlen(getenv("EMBED_ARGUMENTS")) + strlen(argv[i]) + 2);
        sprintf(joined, "%s\n%s", getenv("EMBED_ARGUMENTS"), argv[i]);
        setenv("EMBED_ARGUMENTS", joined, 1);
        free(joined);
    }
    Py_InitializeEx(0);
    int failed = PyRun_SimpleString(
        "import os, sys\n"
        "sys.argv = os.environ['EMBED_ARGUMENTS'].split('\\n')\n"
        "sys.path.insert(0, os.path.dirname(sys.argv[0]))\n"
        "__file__ = sys.argv[0]\n"
        "exec(compile(open(__file__, encoding='utf-8').read(), __file__, 'exec'))\n");
    return failed ? 1 : 0;
}
