package produce

import (
	"strings"
	"testing"
	"time"
)

func TestReadSchedules(t *testing.T) {
	specs, err := readSchedules(strings.NewReader(`# every night
{"name":"report","queue":"mail","cron":"0 2 * * *","payload":{"to":"all"},"tags":{"team":"ops"}}

{"name":"poll","queue":"web","every":"90s","payload":"a \"text\"","paused":true,"next":null}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) != 2 {
		t.Fatalf("got %d schedules, want 2", len(specs))
	}
	if s := specs[0]; s.Name != "report" || s.Cron != "0 2 * * *" || s.Payload != `{"to":"all"}` ||
		s.Tags["team"] != "ops" {
		t.Errorf("got %+v", s)
	}
	if s := specs[1]; s.Name != "poll" || s.Every != 90*time.Second || s.Payload != `a "text"` {
		t.Errorf("got %+v", s)
	}
}

func TestReadRefusesWithTheLine(t *testing.T) {
	const good = `{"name":"poll","queue":"web","every":"90s"}` + "\n"
	tests := []struct{ line, want string }{
		{`{"name":"poll","queue":"web","each":"90s"}`, `unknown field "each"`},
		{`{"name":"poll","queue":"web","every":"90"}`, "every"},
		{`{"name":"poll","queue":"web","every":"-90s"}`, "every"},
		{`{"name":"poll","queue":"web"}`, "cron"},
		{`{"name":"poll","queue":"web","every":"90s","from":"noon"}`, `from: "noon" is not a time`},
		{`{"name":"poll","queue":"web","every":"90s"} {}`, "text after the JSON object"},
		{"{\"name\":\"\xff\"}", "not UTF-8"},
		{`["poll"]`, "not a schedule"},
	}
	for _, tt := range tests {
		specs, err := readSchedules(strings.NewReader(good + "\n" + tt.line))
		if err == nil || specs != nil || !strings.HasPrefix(err.Error(), "line 3: ") ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want an error of line 3 with %q", tt.line, specs, err, tt.want)
		}
	}
}

func TestReadBoundsTheFile(t *testing.T) {
	if _, err := readSchedules(strings.NewReader(strings.Repeat("\n", 8<<20+1))); err == nil ||
		!strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("got %v", err)
	}
}
