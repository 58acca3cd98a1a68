package meter

import (
	"testing"

	_ "jobledger/ledger/ledgertest" // for -soak, which every package's tests must know
)

func TestLabelsAreEscaped(t *testing.T) {
	var m exposition
	m.sample("x", 1, "queue", "a\"b\\c\nd")
	if want := `x{queue="a\"b\\c\nd"} 1` + "\n"; m.String() != want {
		t.Errorf("escaped: %s, want %s", m.String(), want)
	}
}
