package api

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/web/door"
	"jobledger/commands/remote/wire"
)

// ReadParams returns the parameters of r. It accepts only those of params, each at most once except those of
// many, and no empty ones.
func ReadParams(r *http.Request, params []string, many ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, ErrQuery
	}
	return query, checkGiven(query, params, many...)
}

// checkGiven is [CheckParams] where a parameter that is there has a value.
func checkGiven(query url.Values, params []string, many ...string) error {
	if err := CheckParams(query, params, many...); err != nil {
		return err
	}
	for _, name := range SortedNames(query) {
		if slices.Contains(query[name], "") {
			return door.BadInput(name, name+" is empty")
		}
	}
	return nil
}

// CheckParams returns an error, which names params, unless query has no other parameters than those, each
// once but for many. What an address asks for is done or refused, and never ignored.
func CheckParams(query url.Values, params []string, many ...string) error {
	var wrong []wire.InputError
	for _, name := range SortedNames(query) {
		switch {
		case !slices.Contains(params, name):
			wrong = append(wrong, unknownParam(name, params))
		case len(query[name]) > 1 && !slices.Contains(many, name), len(query[name]) > maxParams:
			wrong = append(wrong, tooOften(name))
		}
	}
	if len(wrong) > 0 {
		return door.BadInputs(wrong[:min(len(wrong), maxParams)])
	}
	return nil
}

// unknownParam is the answer to a parameter that is not in params.
func unknownParam(name string, params []string) wire.InputError {
	detail := "there are no parameters"
	if len(params) > 0 {
		detail = fmt.Sprintf("there is no parameter %.40q here; there are: %s", name, strings.Join(params, ", "))
	}
	return wire.InputError{Field: fmt.Sprintf("%.40s", name), Detail: detail}
}

func tooOften(name string) wire.InputError {
	return wire.InputError{Field: name, Detail: name + " is given too often"}
}

// Cloned returns a copy of query.
func Cloned(query url.Values) url.Values { return url.Values(http.Header(query).Clone()) }

// SortedNames are the names of the parameters of query.
func SortedNames(query url.Values) []string { return slices.Sorted(maps.Keys(query)) }

// WholeParam returns the number that a parameter has, from least to most.
func WholeParam(query url.Values, name string, absent, least, most int) (int, error) {
	if !query.Has(name) {
		return absent, nil
	}
	text := query.Get(name)
	n, err := strconv.Atoi(text)
	if err == nil && n >= least && n <= most && strconv.Itoa(n) == text {
		return n, nil
	}
	upTo := fmt.Sprintf(" from %d to %d", least, most)
	if most == math.MaxInt {
		upTo = fmt.Sprintf(", at least %d", least)
	}
	return 0, door.BadInput(name, name+" is a number"+upTo)
}

// SwitchParam returns whether a parameter is true.
func SwitchParam(query url.Values, name string) (bool, error) {
	switch text := query.Get(name); {
	case text == "true":
		return true, nil
	case text == "false", !query.Has(name):
		return false, nil
	}
	return false, door.BadInput(name, name+" is true or false")
}

// wantsLines reports whether the client of r takes lines of JSON, and likes an object with them no better.
func wantsLines(r *http.Request) bool {
	lines, named := door.Likes(r, typeLines)
	object, _ := door.Likes(r, typeObject)
	return lines > 0 && (named && lines >= object || object == 0)
}

// Media types of lists.
const (
	typeObject = "application/json"
	typeLines  = "application/x-ndjson"
)
