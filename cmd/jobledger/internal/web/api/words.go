package api

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/oklog/ulid/v2"

	"jobledger/cmd/jobledger/internal/web/door"
)

// lists are the parameters that may be repeated.
var lists = map[string][]string{"list": {"queue", "state", "tag"}, "events": {"kind"}}

// Words returns the command line for query, with one more than the page's limit asked for, and that limit; 0
// for an answer without pages.
func (res Resource) Words(query url.Values, job string) (words []string, limit int, err error) {
	return res.words(query, job, false)
}

// words is Words; with whole, of a list without pages.
func (res Resource) words(query url.Values, job string, whole bool) (words []string, limit int, err error) {
	bad := func(field, format string, args ...any) error {
		return door.BadInput(field, fmt.Sprintf(format, args...))
	}
	if err := CheckParams(query, res.Params, lists[res.verb]...); err != nil {
		return nil, 0, err
	}
	words = []string{res.verb, "--json"}
	params := 0
	for _, name := range SortedNames(query) {
		values := query[name]
		params += len(values)
		switch {
		case params > maxParams:
			return nil, 0, bad(name, "more than %d parameters", maxParams)
		case name == "limit":
			continue
		}
		for _, value := range values {
			switch {
			case slices.Contains(switches, name) && value != "true" && value != "false":
				return nil, 0, bad(name, "%s is true or false", name)
			case name == "at":
				words = append(words, "--as-of="+value)
			case name == "last" && !inRange(value):
				return nil, 0, bad(name, "last is a number from 1 to %d", maxLimit)
			default:
				words = append(words, "--"+name+"="+value)
			}
		}
	}
	switch {
	case whole && res.form == jobs:
		words = append(words, "--limit=0")
	case whole:
	case res.form == jobs, res.form == events && !query.Has("last"):
		limit = DefaultLimit
		if values := query["limit"]; len(values) > 0 {
			if len(values) > 1 || !inRange(values[0]) {
				return nil, 0, bad("limit", "limit is a number from 1 to %d", maxLimit)
			}
			limit, _ = strconv.Atoi(values[0])
		}
		words = append(words, "--limit="+strconv.Itoa(limit+1))
	case query.Has("limit"):
		return nil, 0, bad("limit", "last and limit exclude each other")
	}
	if res.verb == "owner" && !query.Has("at") {
		words = append(words, "--as-of=now")
	}
	if strings.Contains(res.Path, "{job}") {
		if !IsJobID(job) {
			return nil, 0, bad("job", "%.40q is not the id of a job", job)
		}
		words = append(words, "--", job)
	}
	return words, limit, nil
}

// inRange reports whether text is a number that limit and last may have.
func inRange(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 1 && n <= maxLimit && strconv.Itoa(n) == text
}

// IsJobID reports whether text may be the id of a job, or its beginning.
func IsJobID(text string) bool {
	return text != "" && len(text) <= ulid.EncodedSize &&
		strings.Trim(strings.ToUpper(text), ulid.Encoding) == ""
}
