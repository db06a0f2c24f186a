/* loader.c - loads the shared library given and calls its consumer_main. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = plugin ? dlsym(plugin, "consumer_main") : NULL;
    int (*consumer_main)(void);
    if (!symbol) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: loader PLUGIN");
        return 1;
    }
    memcpy(&consumer_main, &symbol, sizeof symbol);
    return consumer_main();
}
