/* The shim's ordinary path, compiled where there is a C compiler: a Python interpreter needs several times longer to
 * start than everything else that a command does. It speaks exactly what slurmk/wire.py says and does what
 * slurmk/client/shim.py does; whatever is out of the ordinary (no controller answers, one goes away in the middle,
 * standard output refuses) it leaves to that program, by becoming it.
 *
 * It is installed as DIRECTORY/lib/shim; the commands in DIRECTORY/bin are links to it, named by what they are.
 * DIRECTORY/lib/python/COMMAND is the Python form, DIRECTORY/slurmk.sock the controller's socket. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

enum { HELLO = 1, ARGUMENTS = 3, DIRECTORY = 4, ENVIRONMENT = 5, FACTS = 6, GO = 7, CONTENT = 8, UNREADABLE = 9,
       SIGNALLED = 10 };
enum { OUTPUT = 20, ERROR = 21, READ = 22, READ_INPUT = 23, EXECUTE = 24, EXIT = 25, WELCOME = 26,
       AWAIT = 28 };

#define MAXIMUM_FRAME (32u * 1024 * 1024)

struct bytes {
    char *data;
    size_t size, room;
};

static char root[PATH_MAX];
static const char *command;
static char **arguments;
static int heard; /* the controller has said something, so it may have done what was asked */

static char *awaited; /* the jobs that are awaited: for them the request can be made again */

/* Become the Python form of this command. `why` is told to it when the request may have been received; without, it asks
 * again. */
static void leave_to_python(const char *why)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/lib/python/%s", root, command);
    if (why)
        setenv("SLURMK_SHIM_FAULT", why, 1);
    arguments[0] = path;
    execv(path, arguments);
    fprintf(stderr, "%s: error: %s: %s\n", command, path, strerror(errno));
    _exit(1);
}

static void append(struct bytes *to, const void *data, size_t size)
{
    if (to->size + size > to->room) {
        to->room = (to->size + size) * 2;
        to->data = realloc(to->data, to->room);
        if (!to->data)
            leave_to_python(NULL);
    }
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void append_header(struct bytes *to, int kind, size_t size)
{
    unsigned char header[5] = {kind, size >> 24, size >> 16, size >> 8, size};
    if (size > MAXIMUM_FRAME)
        leave_to_python(NULL);
    append(to, header, 5);
}

static void append_frame(struct bytes *to, int kind, const void *data, size_t size)
{
    append_header(to, kind, size);
    append(to, data, size);
}

static void append_strings(struct bytes *to, int kind, char **strings)
{
    size_t size = 0;
    for (char **each = strings; *each; each++)
        size += strlen(*each) + 1;
    append_header(to, kind, size);
    for (char **each = strings; *each; each++)
        append(to, *each, strlen(*each) + 1);
}

static const struct {
    const char *name;
    int number;
} limits[] = {{"CPU", RLIMIT_CPU}, {"FSIZE", RLIMIT_FSIZE}, {"DATA", RLIMIT_DATA}, {"STACK", RLIMIT_STACK},
              {"CORE", RLIMIT_CORE}, {"RSS", RLIMIT_RSS}, {"NPROC", RLIMIT_NPROC}, {"NOFILE", RLIMIT_NOFILE},
              {"MEMLOCK", RLIMIT_MEMLOCK}, {"AS", RLIMIT_AS}};

/* The soft limits that a job takes over: limits=CPU=unlimited,NOFILE=1024 */
static void append_limits(struct bytes *facts)
{
    struct rlimit limit;
    char text[64];
    int size, found = 0;
    append(facts, "limits=", 7);
    for (size_t each = 0; each < sizeof limits / sizeof *limits; each++) {
        if (getrlimit(limits[each].number, &limit))
            continue;
        if (limit.rlim_cur == RLIM_INFINITY)
            size = snprintf(text, sizeof text, "%s%s=unlimited", found++ ? "," : "", limits[each].name);
        else
            size = snprintf(text, sizeof text, "%s%s=%llu", found++ ? "," : "", limits[each].name,
                            (unsigned long long)limit.rlim_cur);
        append(facts, text, size);
    }
    append(facts, "", 1);
}

static void append_facts(struct bytes *to)
{
    struct bytes facts = {0};
    struct utsname system;
    struct winsize window;
    char text[512], terminals[4] = "", name[PATH_MAX];
    mode_t mask = umask(077);
    umask(mask);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (isatty(descriptor))
            strcat(terminals, (char[]){'0' + descriptor, 0});
    uname(&system);
    int size = snprintf(text, sizeof text, "umask=%o%cpid=%d%csid=%d%cresumes=1%cnice=%d%chost=%s%ctty=%s%c", mask, 0,
                        getpid(), 0, getsid(0), 0, 0, getpriority(PRIO_PROCESS, 0), 0, system.nodename, 0, terminals, 0);
    append(&facts, text, size);
    if (*terminals && !ttyname_r(*terminals - '0', name, sizeof name)) {
        append(&facts, "terminal=", 9);
        append(&facts, name, strlen(name) + 1);
    }
    if (strchr(terminals, '1') && !ioctl(1, TIOCGWINSZ, &window)) {
        size = snprintf(text, sizeof text, "columns=%d%c", window.ws_col, 0);
        append(&facts, text, size);
    }
    if (!strcmp(command, "sbatch"))
        append_limits(&facts);
    append_frame(to, FACTS, facts.data, facts.size);
    free(facts.data);
}

/* A controller that refuses in the middle has said why, so a broken connection is found when its answer is read. */
static void send_all(int connection, const char *data, size_t size)
{
    while (size) {
        ssize_t sent = send(connection, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return;
        data += sent;
        size -= sent;
    }
}

static int connected = -1;

static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE};

static volatile sig_atomic_t told; /* the signal that the controller was told of */

/* The controller went away: call again when that can do no harm. */
static void lost(void)
{
    if (awaited && !told)
        setenv("SLURMK_SHIM_AWAITED", awaited, 1);
    leave_to_python(heard && (!awaited || told) ? "lost" : NULL);
}

static void receive_all(int connection, void *data, size_t size)
{
    while (size) {
        ssize_t received = recv(connection, data, size, 0);
        if (received < 0 && errno == EINTR)
            continue;
        if (received <= 0)
            lost();
        data = (char *)data + received;
        size -= received;
    }
}

static void write_all(int descriptor, const char *data, size_t size)
{
    while (size) {
        ssize_t written = write(descriptor, data, size);
        if (written < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){descriptor, POLLOUT, 0}, 1, -1);
            continue;
        }
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && descriptor == 2)
            return;
        if (written < 0) {
            fprintf(stderr, "%s: error: standard output: %s\n", command, strerror(errno));
            _exit(1);
        }
        data += written;
        size -= written;
    }
}

/* Answer READ or READ_INPUT: at most `limit` bytes of the file, or why not. */
static void send_content(int connection, const char *path, size_t limit)
{
    struct bytes content = {0}, frame = {0};
    char piece[65536], text[256];
    int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : 0;
    ssize_t size = descriptor < 0 ? -1 : 0;
    while (size >= 0 && limit && (size = read(descriptor, piece, limit < sizeof piece ? limit : sizeof piece)) > 0) {
        append(&content, piece, size);
        limit -= size;
    }
    if (size < 0) {
        int length = snprintf(text, sizeof text, "%d %s", errno, strerror(errno));
        append_frame(&frame, UNREADABLE, text, length);
    } else {
        append_header(&frame, CONTENT, content.size);
        append(&frame, content.data ? content.data : "", content.size);
    }
    if (path && descriptor >= 0)
        close(descriptor);
    send_all(connection, frame.data, frame.size);
    free(content.data);
    free(frame.data);
}

/* What comes from now on waits until the program that we become has handlers of its own, and so does what came when the
 * controller had already answered. */
static void keep_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t each = 0; each < sizeof numbers / sizeof *numbers; each++)
        sigaddset(&set, numbers[each]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (told)
        raise(told);
}

/* The payload is COUNT, that many arguments, then the environment, each ended by NUL. */
static void become(char *payload, size_t size)
{
    size_t count = 1;
    for (size_t i = 0; i < size; i++)
        count += !payload[i];
    char **strings = calloc(count + 1, sizeof *strings);
    size_t words = strtoul(payload, NULL, 10), found = 0;
    for (char *at = payload + strlen(payload) + 1; at < payload + size && strings; at += strlen(at) + 1)
        strings[found++] = at;
    if (!strings || words > found || !words)
        leave_to_python("lost");
    char **program = calloc(words + 1, sizeof *program);
    if (!program)
        leave_to_python("lost");
    if (connected >= 0)
        keep_signals();
    memcpy(program, strings, words * sizeof *program);
    execve(program[0], program, strings + words);
    fprintf(stderr, "%s: error: %s: %s\n", command, program[0], strerror(errno));
    _exit(1);
}

/* Tell the controller which signal came: it says what that means, and gives the exit code. A second one ends us at once. */
static void signalled(int number)
{
    char frame[16] = {SIGNALLED, 0, 0, 0, 2, '0' + number / 10, '0' + number % 10};
    int before = errno;
    told = number;
    if (send(connected, frame, 7, MSG_NOSIGNAL) < 0)
        signal(number, SIG_DFL);
    errno = before;
}

static void tell_signals(int connection)
{
    struct sigaction action = {.sa_handler = signalled, .sa_flags = SA_RESTART | SA_RESETHAND};
    connected = connection;
    for (size_t each = 0; each < sizeof numbers / sizeof *numbers; each++)
        sigaction(numbers[each], &action, NULL);
}

static void serve(int connection)
{
    for (;;) {
        unsigned char header[5];
        receive_all(connection, header, 5);
        size_t size = (size_t)header[1] << 24 | header[2] << 16 | header[3] << 8 | header[4];
        char *payload = size <= MAXIMUM_FRAME ? malloc(size + 1) : NULL;
        if (!payload)
            leave_to_python("lost");
        receive_all(connection, payload, size);
        payload[size] = 0;
        heard = 1;
        char *rest = payload;
        switch (header[0]) {
        case WELCOME:
            break;
        case OUTPUT:
            write_all(1, payload, size);
            break;
        case ERROR:
            write_all(2, payload, size);
            break;
        case EXIT:
            _exit(strtoul(payload, NULL, 10) & 0xff);
        case READ: {
            size_t limit = strtoul(payload, &rest, 10);
            send_content(connection, *rest == ' ' ? rest + 1 : rest, limit);
            break;
        }
        case READ_INPUT:
            send_content(connection, NULL, strtoul(payload, NULL, 10));
            break;
        case AWAIT:
            free(awaited);
            awaited = size ? strdup(payload) : NULL;
            break;
        case EXECUTE:
            become(payload, size);
            break;
        default:
            leave_to_python("lost");
        }
        free(payload);
    }
}

/* The directory two levels above this program. */
static void find_root(void)
{
    ssize_t size = readlink("/proc/self/exe", root, sizeof root - 1);
    root[size > 0 ? size : 0] = 0;
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(root, '/');
        if (slash)
            *slash = 0;
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct bytes request = {0};
    struct stat ignored;
    char directory[PATH_MAX], text[128];

    if (!argc)
        return 1;
    arguments = argv;
    command = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    find_root();
    for (int descriptor = 0; descriptor < 3; descriptor++)
        if (fstat(descriptor, &ignored))
            leave_to_python(NULL);
    const char *given = getenv("SLURMK_SOCKET");
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/slurmk.sock", root);
    const char *target = given && *given ? given : path;
    if (strlen(target) >= sizeof address.sun_path || !strncmp(target, "tcp:", 4))
        leave_to_python(NULL);
    strcpy(address.sun_path, target);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address))
        leave_to_python(NULL);

    append_frame(&request, HELLO, text, snprintf(text, sizeof text, "1 %s", command));
    append_strings(&request, ARGUMENTS, argv + 1);
    if (!getcwd(directory, sizeof directory))
        directory[0] = 0;
    append_frame(&request, DIRECTORY, directory, strlen(directory));
    append_strings(&request, ENVIRONMENT, environ);
    append_facts(&request);
    append_frame(&request, GO, "", 0);
    send_all(connection, request.data, request.size);
    free(request.data);
    if (!strcmp(command, "salloc") || !strcmp(command, "srun"))
        tell_signals(connection);
    serve(connection);
    return 1;
}
