//go:build !unix

package ledgertest

import (
	"fmt"
	"testing"
)

// PgBouncer skips the test here, or fails it if CI is true.
func PgBouncer(t testing.TB, _, _ string, _ ...string) string {
	t.Helper()
	unavailable(t, fmt.Errorf("%w: tests start PgBouncer on Unix only", errNoPostgres))
	return ""
}

// cluster has no implementation here: nothing would stop the server if this process were killed.
type cluster struct{}

func newCluster() (*cluster, error) {
	return nil, fmt.Errorf("%w: tests start it on Unix only; JOBLEDGER_TEST_POSTGRES may name a server",
		errNoPostgres)
}

func (*cluster) url() string                   { return "" }
func (*cluster) log() string                   { return "" }
func (*cluster) newStandby() (*cluster, error) { return nil, nil }
func (*cluster) start() error                  { return nil }
func (*cluster) stop() error                   { return nil }
func (*cluster) kill() error                   { return nil }
func (*cluster) promote() error                { return nil }
func (*cluster) end() error                    { return nil }
