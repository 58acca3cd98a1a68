//go:build unix

package ledgertest

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cluster is a PostgreSQL server in a temporary folder. It is supervised by a shell, which reads commands
// from a pipe. The pipe is closed when this process ends, for whatever reason; the shell then stops the
// server and removes the folder.
type cluster struct {
	dir      string
	password string
	port     int

	supervisor *exec.Cmd
	commands   *os.File // the only write end of the pipe; referenced here so that it is not closed as garbage
	answers    *os.File
	lines      *bufio.Reader // the answers
}

// supervise answers each command with its exit code. start returns when the server is ready or gone, because
// a server that has not set up its handlers yet could lose a signal. stop always waits, because a server that
// was killed from outside remains until it is waited for.
const supervise = `
trap '' HUP INT TERM PIPE
cd "$1" || exit
exec 2>>log
bin=$2
pid=

init() {
    umask 077
    printf '%s\n' "$1" >password
    "$bin/initdb" -D data --no-sync --encoding=UTF8 --locale=C --username=postgres \
        --auth=scram-sha-256 --pwfile=password </dev/null >&2
}

# copy makes the data of a standby from a running server.
copy() {
    umask 077
    "$bin/pg_basebackup" -D data -d "$1" -R -X stream -c fast </dev/null >&2
}

ready() {
    [ -e data/postmaster.pid ] || return
    last=
    while read -r line; do last=$line; done <data/postmaster.pid
    read -r first <data/postmaster.pid || return
    [ "$first $last" = "$pid ready" ] || [ "$first $last" = "$pid standby" ]
}

start() {
    [ -z "$pid" ] || { echo "the server has not been stopped" >&2; return 1; }
    "$bin/postgres" -D data -p "$1" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
        -c fsync=off -c synchronous_commit=on -c full_page_writes=off -c shared_buffers=64MB \
        -c max_connections=200 -c max_prepared_transactions=10 \
        -c wal_retrieve_retry_interval=100ms </dev/null >&2 &
    pid=$!
    tries=3000
    until ready; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ] || ! kill -0 "$pid" 2>/dev/null; then
            stop QUIT
            return 1
        fi
        sleep 0.02
    done
}

stop() {
    [ -z "$pid" ] && return
    kill -s "$1" "$pid" 2>/dev/null
    wait "$pid"
    pid=
}

while read -r command argument; do
    case $command in
    init) init "$argument" ;;
    copy) copy "$argument" ;;
    promote) "$bin/pg_ctl" promote -D data -w </dev/null >&2 ;;
    start) start "$argument" ;;
    stop) stop INT ;;
    kill) stop QUIT ;;
    esac
    echo $?
done
stop QUIT
cd / && rm -rf "$1"
`

// newCluster creates a cluster and starts its server.
func newCluster() (*cluster, error) {
	// Every user of the machine can connect to the port.
	password := rand.Text()
	return makeCluster("init", password, password)
}

// newStandby creates a cluster that follows c, and starts its server.
func (c *cluster) newStandby() (*cluster, error) { return makeCluster("copy", c.url(), c.password) }

// makeCluster creates a cluster by a command of its supervisor, and starts its server.
func makeCluster(command, argument, password string) (*cluster, error) {
	rights, err := unprivileged()
	if err != nil {
		return nil, err
	}
	bin, err := programs(rights)
	if err != nil {
		return nil, err
	}
	dir, err := folder(rights)
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, password: password}
	if err := c.supervise(bin, rights); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.do(command, argument); err != nil {
		return nil, errors.Join(err, c.end())
	}
	// The port is below those that systems give to clients: otherwise a client that connects to a stopped server
	// could get the server's own port and keep it.
	for range 20 {
		c.port = 20000 + mathrand.IntN(10000)
		if err = c.start(); err == nil {
			return c, nil
		}
		if !strings.Contains(err.Error(), "could not bind") {
			break
		}
	}
	return nil, errors.Join(err, c.end())
}

// supervise starts the shell.
func (c *cluster) supervise(bin string, rights *syscall.Credential) error {
	input, commands, err := os.Pipe()
	if err != nil {
		return err
	}
	defer input.Close()
	answers, output, err := os.Pipe()
	if err != nil {
		return errors.Join(err, commands.Close())
	}
	defer output.Close()
	c.supervisor = as(rights, exec.Command("/bin/sh", "-c", supervise, "sh", c.dir, bin))
	c.supervisor.Stdin, c.supervisor.Stdout = input, output
	c.supervisor.SysProcAttr.Setsid = true // an interrupt from the terminal must not reach it
	if err := c.supervisor.Start(); err != nil {
		return errors.Join(err, commands.Close(), answers.Close())
	}
	c.commands, c.answers, c.lines = commands, answers, bufio.NewReader(answers)
	return nil
}

func (c *cluster) url() string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", c.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

func (c *cluster) start() error   { return c.do("start", strconv.Itoa(c.port)) }
func (c *cluster) stop() error    { return c.do("stop", "") }
func (c *cluster) kill() error    { return c.do("kill", "") }
func (c *cluster) promote() error { return c.do("promote", "") }

// do sends a command to the supervisor and waits for its answer.
func (c *cluster) do(command, argument string) error {
	if _, err := fmt.Fprintln(c.commands, command, argument); err != nil {
		return fmt.Errorf("%s PostgreSQL: %w", command, err)
	}
	if err := c.answers.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		return err
	}
	answer, err := c.lines.ReadString('\n')
	if err == nil && answer != "0\n" {
		err = fmt.Errorf("exit code %s", strings.TrimSpace(answer))
	}
	if err != nil {
		return fmt.Errorf("%s PostgreSQL: %w; the end of its log:\n%s", command, err, c.log())
	}
	return nil
}

// log returns the end of the server's log.
func (c *cluster) log() string {
	text, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8000):])
}

// end waits until the server and its folder are gone.
func (c *cluster) end() error {
	return errors.Join(c.commands.Close(), c.supervisor.Wait(), c.answers.Close())
}

// unprivilegedUsers are users that a system may have for a server.
var unprivilegedUsers = []string{"postgres", "nobody"}

// unprivileged returns the credentials that PostgreSQL runs with if this process is root, because PostgreSQL
// refuses to run as root; otherwise nil.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range unprivilegedUsers {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("%w: it refuses to run as root, and there is no user %s",
		errNoPostgres, strings.Join(unprivilegedUsers, " or "))
}

// as sets the credentials of cmd and an environment in which PostgreSQL behaves the same everywhere.
func as(rights *syscall.Credential, cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: rights}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "TZ=UTC")
	return cmd
}

// programs returns the folder of PostgreSQL's programs. Some systems install several versions outside PATH.
func programs(rights *syscall.Credential) (string, error) {
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/pgsql/bin",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, dir := range dirs {
		if runs(rights, dir, "initdb") && runs(rights, dir, "postgres") {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: install its server (Debian and Ubuntu: postgresql; Fedora: postgresql-server; "+
		"Homebrew: postgresql@17) or name one in JOBLEDGER_TEST_POSTGRES", errNoPostgres)
}

// version returns the number in the name of a folder of programs, or 0.
func version(dir string) float64 {
	n, _ := strconv.ParseFloat(regexp.MustCompile(`\d+(\.\d+)?`).FindString(dir), 64)
	return n
}

// runs reports whether the program in dir can be run. A program in PATH may be a script that starts something
// else.
func runs(rights *syscall.Credential, dir, program string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := as(rights, exec.CommandContext(ctx, filepath.Join(dir, program), "--version"))
	cmd.Dir = "/"
	out, err := cmd.Output()
	return err == nil && strings.Contains(string(out), "(PostgreSQL)")
}

// folder creates a temporary folder which a process with these credentials can reach and remove. Root's own
// temporary folder may not be accessible to others.
func folder(rights *syscall.Credential) (string, error) {
	var errs []error
	for _, parent := range folders() {
		dir, err := os.MkdirTemp(parent, "jobledger-postgres-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if rights != nil {
			err = os.Chown(dir, int(rights.Uid), int(rights.Gid))
		}
		if err == nil {
			cmd := as(rights, exec.Command("/bin/sh", "-c", "test -w .."))
			cmd.Dir = dir
			err = cmd.Run()
		}
		if err == nil {
			return dir, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", dir, err), os.RemoveAll(dir))
	}
	return "", errors.Join(errs...)
}

// roomInMemory is how much space /dev/shm must have free; containers often have 64 MiB there.
const roomInMemory = 2 << 30 // bytes

// folders are the places for a cluster, best first: creating a database takes tenths of a second on a disk
// and hundredths in memory.
func folders() (parents []string) {
	var memory unix.Statfs_t
	if os.Getenv("TMPDIR") == "" && unix.Statfs("/dev/shm", &memory) == nil &&
		uint64(memory.Bavail)*uint64(memory.Bsize) > roomInMemory {
		parents = append(parents, "/dev/shm")
	}
	return append(parents, os.TempDir(), "/tmp")
}
