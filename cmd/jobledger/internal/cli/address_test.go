package cli

import (
	"testing"
	"time"
)

func TestDisplayDSN(t *testing.T) {
	for dsn, want := range map[string][2]string{
		"jobs.db": {"jobs.db", "jobs.db"},
		"postgres://me:geheim@host/db": {"postgres://me@host:5432/db",
			"postgres://me@host/db"},
		"postgres://me@host/db?schema=a": {"postgres://me@host:5432/db?schema=a",
			"postgres://me@host/db?schema=a"},
		"postgresql://me:geheim@host:1/db": {"postgres://me@host:1/db",
			"postgresql://me@host:1/db"},
		"postgres://me:ge/heim@host/db": {"postgres://…", "postgres://…"},
		"postgres://me@host/db?sync=normal": {"postgres://me@host:5432/db",
			"postgres://me@host/db?sync=normal"},
		"postgres://host/db?user=me&password=geheim&sslmode=disable": {"postgres://me@host:5432/db",
			"postgres://host/db?sslmode=disable&user=me"},
	} {
		if got := [2]string{DisplayDSN(dsn), (&Program{DB: dsn}).DBFlag()[len(" --db "):]}; got[0] != want[0] ||
			got[1] != want[1] && got[1] != "'"+want[1]+"'" {
			t.Errorf("%s: %s and %s", dsn, got[0], got[1])
		}
	}
}

func TestDBFlagOmitsEnvironment(t *testing.T) {
	t.Setenv("JOBLEDGER_DB", "postgres://me:geheim@host/db")
	for dsn, want := range map[string]string{"jobledger.db": "", "postgres://me:geheim@host/db": "",
		"postgres://host/b": " --db postgres://host/b"} {
		if got := (&Program{DB: dsn}).DBFlag(); got != want {
			t.Errorf("%s: %q", dsn, got)
		}
	}
}

// The times that the program prints for a ledger on a server follow the server's clock.
func TestUseServerClock(t *testing.T) {
	here := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &Program{Now: func() time.Time { return here }}
	for _, step := range []struct{ ahead, want time.Duration }{
		{100 * time.Millisecond, 0}, {time.Hour, time.Hour}, {time.Hour, time.Hour}, {-time.Minute, -time.Minute},
		{0, 0},
	} {
		p.useServerClock(step.ahead)
		if got := p.Now().Sub(here); got != step.want {
			t.Errorf("%s ahead, now is %s ahead", step.ahead, got)
		}
	}
}
