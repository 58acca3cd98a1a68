//go:build unix

package ledgertest

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bounce runs a pooler until its input is closed, for whatever reason.
const bounce = `
cd "$1" || exit
"$2" pgbouncer.ini </dev/null >log 2>&1 &
pid=$!
read -r end
kill "$pid"
wait "$pid"
`

// PgBouncer returns the URL of the database at dsn through a PgBouncer of this test, which has the settings
// that it comes with, the pool mode given: session, transaction or statement, and further settings as in
// "default_pool_size = 1". If it is not installed the test is skipped, or fails if CI is true.
func PgBouncer(t testing.TB, dsn, mode string, settings ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
	}
	if _, err := os.Stat(program); err != nil {
		unavailable(t, fmt.Errorf("%w: install pgbouncer", errNoPostgres))
	}
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	rights, err := unprivileged()
	if err != nil {
		unavailable(t, err)
	}
	dir, err := folder(rights)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port := strconv.Itoa(20000 + mathrand.IntN(10000))
	password, _ := server.User.Password()
	config := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s password=%s\n"+
		"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\n"+
		"auth_type = any\npool_mode = %s\n%s\n",
		server.Hostname(), server.Port(), server.User.Username(), password, port, mode,
		strings.Join(settings, "\n"))
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil { // #nosec G306 -- in a folder of its own
		t.Fatal(err)
	}
	pooler := as(rights, exec.Command("/bin/sh", "-c", bounce, "sh", dir, program))
	input, err := pooler.StdinPipe()
	if err == nil {
		err = pooler.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(input.Close(), pooler.Wait()) })
	address := net.JoinHostPort("127.0.0.1", port)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) { // pause of a poll
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Fatalf("PgBouncer does not answer: %v\n%s", err, log)
		}
	}
	through := *server
	through.Host = address
	return through.String()
}
