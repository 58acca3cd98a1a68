package export

import (
	"context"
	"io"

	"jobledger/ledger"
)

// Formats are the names of all formats, the default first.
var Formats = []string{"jsonl", "csv", "trace", "otlp"}

// FormatWords is Formats as a sentence has it.
const FormatWords = "jsonl, csv, trace or otlp"

// Claims writes the claims of a window to out: [CSV], [Trace] or [OTLP].
type Claims func(ctx context.Context, store *ledger.Store, w Window, out io.Writer) error

// ClaimsIn returns what writes claims in the format of this name; nil where that is [Lines].
func ClaimsIn(format string) Claims {
	return map[string]Claims{"csv": CSV, "trace": Trace, "otlp": OTLP}[format]
}
