package worker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobledger/projection"
)

func TestCommandInheritsEnvironment(t *testing.T) {
	env := []string{"PATH=/bin", "LC_ALL=C", "LC=x", "PATHS=x", "A=1", "AA=2", "EMPTY=", "NONAME",
		"A=again", "=x", "JOBLEDGER_TOKEN=another job's", "JOBLEDGER_X=1", "NOTIFY_SOCKET=/run/x", "TZ=UTC"}
	tests := []struct {
		only []string
		want string
	}{
		{nil, "PATH=/bin LC_ALL=C LC=x PATHS=x A=1 AA=2 EMPTY= NONAME A=again =x TZ=UTC"},
		{[]string{}, "PATH=/bin LC_ALL=C TZ=UTC"},
		{[]string{"A"}, "PATH=/bin LC_ALL=C A=1 A=again TZ=UTC"},
		{[]string{"EMPTY", "NOTIFY_SOCKET", "JOBLEDGER_X", "LC_*", "TZ"}, "PATH=/bin LC_ALL=C EMPTY= TZ=UTC"},
	}
	for _, tt := range tests {
		before := slices.Clone(env)
		c := &Command{Env: env, EnvOnly: tt.only, DB: "/jobs.db"}
		got := c.environment(projection.Job{ID: "01J", Token: "its own"})
		own := slices.IndexFunc(got, func(v string) bool { return strings.HasPrefix(v, "JOBLEDGER_") })
		if inherited := strings.Join(got[:own], " "); inherited != tt.want {
			t.Errorf("%q: got %s, want %s", tt.only, inherited, tt.want)
		}
		if !slices.Contains(got[own:], "JOBLEDGER_TOKEN=its own") || len(got) != own+9 {
			t.Errorf("%q: of the job it gets %q", tt.only, got[own:])
		}
		if !slices.Equal(env, before) {
			t.Errorf("%q: it has changed what it was given", tt.only)
		}
	}
}

func TestReasonFitsItsLimit(t *testing.T) {
	long := fmt.Errorf("a\x00\xff%s", bytes.Repeat([]byte("é"), 1000))
	if got := reason(long); len(got) > 1024 || len(got) < 1020 || got[:9] != "a\uFFFD\uFFFDé" {
		t.Errorf("got %d bytes, %q…", len(got), got[:9])
	}
}
