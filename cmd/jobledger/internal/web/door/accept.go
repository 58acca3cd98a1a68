package door

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"jobledger/commands/remote/wire"
)

// Media types of JSON. An object in one line is lines too.
const (
	typeObject = "application/json"
	typeLines  = "application/x-ndjson"
)

// asLines gives an answer that is an object the media type of lines, for a client that takes only these.
func asLines(r *http.Request, h http.Header) {
	if h.Get("Content-Type") != typeObject {
		return
	}
	if object, _ := Likes(r, typeObject); object == 0 {
		h.Set("Content-Type", typeLines)
	}
}

// Likes returns how much the client of r likes a media type, from 0, where it takes none, to 1, and whether
// it names the type itself. A client that names nothing that can be read takes anything.
func Likes(r *http.Request, kind string) (q float64, named bool) {
	family, _, _ := strings.Cut(kind, "/")
	ranges := []string{"*/*", family + "/*", kind} // what is nearer to the type counts
	best, any := -1, true
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		asked, params, err := mime.ParseMediaType(one)
		if err != nil || !strings.Contains(asked, "/") {
			continue
		}
		any = false
		near := slices.Index(ranges, asked)
		if near < 0 || near < best {
			continue
		}
		value := 1.0
		if text, has := params["q"]; has {
			if value, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		if near > best {
			q, best = 0, near
		}
		q = max(q, value)
	}
	if any {
		return 1, false
	}
	return q, best == len(ranges)-1
}

// Acceptable returns an error unless the client of r takes one of the media types that the answer can have.
func Acceptable(r *http.Request, kinds ...string) error {
	for _, kind := range kinds {
		if q, _ := Likes(r, kind); q > 0 {
			return nil
		}
	}
	return Refusal(http.StatusNotAcceptable, "not_acceptable",
		"the header Accept has nothing that the answer can be: "+strings.Join(kinds, ", "))
}

// acceptable returns an error unless the client of r takes what the route answers with.
func (rt Route) acceptable(r *http.Request) error {
	method, path, _ := strings.Cut(rt.Pattern, " ")
	switch {
	case rt.Types != nil:
		return Acceptable(r, rt.Types...)
	case !strings.HasPrefix(path, wire.Root+"/"):
		return nil
	case method == http.MethodGet:
		return Acceptable(r, typeObject, typeLines)
	}
	return Acceptable(r, typeObject)
}
