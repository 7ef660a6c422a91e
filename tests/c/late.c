/* A program that knows nothing of Python until it loads some: one for all to see, several each in a scope of its own
 * (RTLD_LOCAL; extension modules then lack the symbols of their interpreter, so only pure modules can be imported).
 *
 * late BEFORE AFTER (LIBRARY HOME)… -- SCRIPT ARGUMENTS…
 *
 * Sleeps BEFORE seconds, then loads each LIBRARY (a libpython) and starts its interpreter with the standard library of
 * the prefix HOME, in a thread of its own; prints `loaded`; and AFTER seconds later each runs the script as __main__. The
 * number of the library, from 0 on, is appended to the script's last argument.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 4

static struct runtime {
    const char *library;
    pthread_t thread;
    char *program;
    int (*run)(const char *, void *);
    int failed;
} runtimes[MOST];
static double after;
static int scope;
static pthread_barrier_t loaded;

static void wait_for(double seconds) {
    usleep((useconds_t)(seconds * 1e6));
}

/* The text of a Python list of the arguments, the last one with the number of the runtime. */
static char *program_of(char **arguments, int number) {
    char *text = calloc(1, 1 << 16);
    strcat(text, "import sys\nsys.argv = [");
    for (char **a = arguments; *a; a++) {
        strcat(text, "'");
        strcat(text, *a);
        if (!a[1]) sprintf(text + strlen(text), "%d", number);
        strcat(text, "', ");
    }
    strcat(text, "]\nsys.path.insert(0, sys.argv[0].rpartition('/')[0])\n__file__ = sys.argv[0]\n"
                 "exec(compile(open(__file__, encoding='utf-8').read(), __file__, 'exec'))\n");
    return text;
}

static void *run(void *argument) {
    struct runtime *runtime = argument;
    void *library = dlopen(runtime->library, RTLD_NOW | scope);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    void (*initialize)(int) = (void (*)(int))dlsym(library, "Py_InitializeEx");
    int (*run_string)(const char *, void *) = (int (*)(const char *, void *))dlsym(library, "PyRun_SimpleStringFlags");
    initialize(0);
    pthread_barrier_wait(&loaded);
    wait_for(after);
    runtime->failed = run_string(runtime->program, NULL);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 7) {
        fprintf(stderr, "usage: late BEFORE AFTER (LIBRARY HOME)... -- SCRIPT ARGUMENTS...\n");
        return 64;
    }
    after = atof(argv[2]);
    int count = 0, at = 3;
    while (at + 1 < argc && strcmp(argv[at], "--") && count < MOST) {
        runtimes[count++].library = argv[at];
        at += 2;
    }
    scope = count == 1 ? RTLD_GLOBAL : RTLD_LOCAL;
    pthread_barrier_init(&loaded, NULL, (unsigned)count + 1);
    wait_for(atof(argv[1]));
    for (int i = 0; i < count; i++) {
        setenv("PYTHONHOME", argv[4 + 2 * i], 1);
        runtimes[i].program = program_of(argv + at + 1, i);
        pthread_create(&runtimes[i].thread, NULL, run, &runtimes[i]);
        /* PYTHONHOME is read by the thread. */
        wait_for(0.5);
    }
    pthread_barrier_wait(&loaded);
    printf("loaded\n");
    fflush(stdout);
    int failed = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(runtimes[i].thread, NULL);
        failed |= runtimes[i].failed;
    }
    return failed ? 1 : 0;
}
