package frame

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"time"

	"jobledger/cmd/jobledger/internal/words"
)

// shownTime is a time with its date and offset, in the text of HTML, where + is an entity.
var shownTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?` +
		`(\+|&#43;|-)[0-9]{2}:[0-9]{2}`)
})

// Retimed is text that this program made, with its times in zone: it may have been made for another page.
func Retimed(text string, zone *time.Location) string {
	return shownTime().ReplaceAllStringFunc(text, func(found string) string {
		at, err := time.Parse("2006-01-02 15:04:05-07:00", found)
		if err != nil {
			return found
		}
		return words.Time(at.In(zone))
	})
}

// untimed are the elements in which times are not text of the page, or are marked already.
var untimed = map[string]bool{"head": true, "svg": true, "code": true, "pre": true, "option": true,
	"textarea": true, "time": true, "script": true}

// timed puts each time that page shows, a whole document, into an element time. It has the same moment in
// UTC, for programs and, where a pointer rests on it, for people.
func timed(page []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(page) + len(page)/8)
	for len(page) > 0 {
		begin := bytes.IndexByte(page, '<')
		if begin < 0 {
			begin = len(page)
		}
		out.Write(markTimes(page[:begin]))
		page = page[begin:]
		end := bytes.IndexByte(page, '>') + 1 // an attribute has it as an entity
		if end == 0 {
			end = len(page)
		}
		name, _, _ := strings.Cut(strings.Trim(string(page[:end]), "<>"), " ")
		if untimed[name] {
			if close := bytes.Index(page, []byte("</"+name+">")); close > 0 {
				end = close
			}
		}
		out.Write(page[:end])
		page = page[end:]
	}
	return out.Bytes()
}

// markTimes returns text, which is HTML, with a time element around each time in it.
func markTimes(text []byte) []byte {
	if len(text) < len("2006-01-02 15:04:05-07:00") {
		return text
	}
	return shownTime().ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse("2006-01-02 15:04:05-07:00", strings.Replace(string(found), "&#43;", "+", 1))
		if err != nil {
			return found
		}
		utc := Stamp(at)
		return []byte(`<time datetime="` + utc + `" title="` + utc + `">` + string(found) + `</time>`)
	})
}
