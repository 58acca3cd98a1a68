package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"jobledger/projection/audit"
)

// TestVerifyFindsWrongStops alters the events of v2 that record the end of the command of a lost claim, and
// the events of those claims.
func TestVerifyFindsWrongStops(t *testing.T) {
	file := recordedHistory(t, "v2.jsonl")
	stop := func(pos int, change string) string {
		return fmt.Sprintf(`UPDATE events SET %s WHERE pos = %d AND kind = 29`, change, pos)
	}
	for name, test := range map[string]struct{ damage, detail string }{
		"nothing": {"SELECT 1", ""},
		"another reason": {stop(8, `data = replace(data, 'cancelled', 'reclaimed')`),
			`its claim was cancelled, and its end is said to be "reclaimed"`},
		"the other reason": {stop(12, `data = replace(data, 'reclaimed', 'cancelled')`),
			`its claim was reclaimed, and its end is said to be "cancelled"`},
		"of a claim that its owner ended": {
			`UPDATE events SET kind = 29, data = (SELECT data FROM events WHERE pos = 12) WHERE pos = 22`,
			`its claim was not lost, and its end is said to be "reclaimed"`},
		"of another attempt": {stop(12, `attempt = 1`),
			`it names attempt 1 by "w1", and the token is that of attempt 2 by "w1"`},
		"of another process": {stop(8, `worker = (SELECT worker FROM events WHERE pos = 3)`),
			`it names attempt 1 by "w1"`},
		"a token never given": {stop(12, `ulid = '01KJMD7YNXT0KEN00000000009'`),
			`and the token is that of attempt 0 by ""`},
		"recorded twice": {
			`UPDATE events SET kind = 29, data = (SELECT data FROM events WHERE pos = 8) WHERE pos = 6`,
			"its command had stopped before, by event 6"},
	} {
		t.Run(name, func(t *testing.T) {
			v := damaged(t, file, test.damage)
			found := false
			for _, f := range v.Findings {
				if f.Code != audit.FindStopped {
					t.Errorf("another finding: %+v", f)
				}
				found = found || strings.Contains(f.Detail, test.detail)
			}
			if found != (test.detail != "") {
				t.Errorf("got %+v, want %q", v.Findings, test.detail)
			}
		})
	}
}
