package words

import (
	"fmt"
	"strings"
)

// Body is a payload or result in one line: whole in a pipe, on a terminal as much as a person reads.
func Body(body []byte, terminal bool) string {
	const most = 1000 // columns
	if len(body) == 0 {
		return "(0 bytes)"
	}
	if !terminal || len(body) <= most {
		return string(body)
	}
	return Truncate(Escape(string(body[:min(len(body), 4*most)])), most) +
		fmt.Sprintf(" (%d bytes in all; --json has them)", len(body))
}

// Block returns text of several lines, indented and escaped; on a terminal only its end, where the error
// usually is.
func Block(text string, terminal bool) string {
	const most = 20
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if terminal && len(lines) > most {
		lines = append([]string{fmt.Sprintf("… %s before; --json has all", Count(int64(len(lines)-most), "line"))},
			lines[len(lines)-most:]...)
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight("    | "+Escape(strings.TrimSuffix(l, "\r")), " ") + "\n")
	}
	return b.String()
}
