// Package fingerprint says which failures are of one sort. It is pure.
//
//	fingerprint.Of("exit_code", &exit, "", detail) // f1-…, the same for all of one sort
//	fingerprint.Fold("user 17 unknown")            // user … unknown
//
// A fingerprint stands in links and command lines, so what f1 means never changes: another rule would be f2.
// testdata/f1.txt has examples.
//
// Held by TestFingerprints and FuzzFingerprint.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Limits of what is read, in bytes.
const (
	maxLine   = 1 << 10 // of the last line
	maxFolded = 200
)

// form is what a fingerprint looks like.
var form = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^f1-[0-9a-f]{12}$`) })

// Is reports whether text is a fingerprint.
func Is(text string) bool { return form().MatchString(text) }

// Of returns the fingerprint of an attempt that ended with an error code, or for a reason. exit is how its
// command exited, signal what killed it; nil and "": neither.
func Of(code string, exit *int, signal, detail string) string {
	number := ""
	if exit != nil {
		number = strconv.Itoa(*exit)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{code, number, signal, Fold(detail)}, "\x00")))
	return "f1-" + hex.EncodeToString(sum[:6])
}

// LastLine returns the last line of an error detail that is not blank.
func LastLine(detail string) string {
	detail = strings.TrimRightFunc(detail, unicode.IsSpace)
	return strings.TrimSpace(detail[strings.LastIndexAny(detail, "\n\r")+1:])
}

// sign stands for what differs.
const sign = "…"

// parts are those of a line that differ between failures of one sort, and some that look so and are kept: see
// folded. The first one that fits counts.
var parts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`\x1b\[[0-9;]*[A-Za-z]`,             // a colour
		`"[^"]*"`, `\B'[^']*'\B`, "`[^`]*`", // quoted; 't of don't is not
		`://[^\s/"'<>?#]+(?:[/?#][^\s"'<>]*)?`, // the host and the path of a URL
		`\b[A-Za-z]:\\[^\s"'<>]*`,              // a path
		`\B(?:/[\w.@%~+=?&#-]+)+`,              // a path
		`[\w.+%-]+@[\w-]+(?:\.[\w-]+)*`,        // an address
		`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b`,
		`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b`,
		`\b0[xX][0-9a-fA-F]+`,
		`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`,                                 // a ULID
		`\b[0-9a-fA-F]{1,4}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{1,4}\b`, // IPv6, MAC, a time
		`\b[0-9a-fA-F]{8,}\b`,
		`(?i)\b(?:HTTP(?:/\d(?:\.\d)?)?|status)(?:\s+code)?[\s:=]*[1-5]\d\d\b`, // kept
		`\b\d+(?:[.,]\d+)*(?:(?:ns|µs|us|ms|s|m|h|d)(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|s|m|h))*|[kKMGT]?i?B)\b`,
		`\d+(?:[.,:]\d+)*`,
	}, "|"))
})

// Fold returns the last line of an error detail with … for what differs between failures of one sort: what
// is quoted, addresses, paths, times and sizes, long hexadecimal numbers and ids, and digits, but not those
// before a letter, and not a code such as 503 at the beginning of the line or after HTTP or status.
func Fold(detail string) string {
	line := LastLine(detail)
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	var b strings.Builder
	done := 0
	for _, found := range parts().FindAllStringIndex(line, -1) {
		b.WriteString(line[done:found[0]])
		b.WriteString(folded(line, found[0], found[1]))
		done = found[1]
	}
	b.WriteString(line[done:])
	text := strings.ReplaceAll(strings.ToValidUTF8(b.String(), "�"), sign+sign, sign)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxFolded {
		text = strings.ToValidUTF8(text[:maxFolded], "")
	}
	return text
}

// folded is the placeholder for a part of line.
func folded(line string, from, to int) string {
	part := line[from:to]
	next, _ := utf8.DecodeRuneInString(line[to:])
	host, isURL := strings.CutPrefix(part, "://")
	switch {
	case part[0] == '\x1b':
		return ""
	case isURL:
		if i := strings.IndexAny(host, "/?#"); i >= 0 {
			return "://" + Fold(host[:i]) + sign
		}
		return "://" + Fold(host)
	case strings.EqualFold(part[:1], "h") || strings.EqualFold(part[:1], "s"):
		if isCode(part[len(part)-3:]) && !strings.Contains(part, "@") { // HTTP 503, status: 503
			return part
		}
	case from == 0 && to == 3 && isCode(part):
		return part
	case strings.Trim(part, "0123456789.,:") == "" && unicode.IsLetter(next), // 2nd
		!strings.ContainsAny(part, `0123456789@/\"'`+"`"): // a word of hexadecimal digits
		return part
	}
	return sign
}

// isCode reports whether text is like a status of HTTP or SMTP.
func isCode(text string) bool {
	return len(text) == 3 && text[0] >= '1' && text[0] <= '5' && strings.Trim(text, "0123456789") == ""
}
