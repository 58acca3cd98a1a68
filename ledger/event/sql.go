package event

import (
	"fmt"
	"strconv"
	"strings"
)

// RareAfter is the kind after which all are rare. The index rare_events has those only, and a query that is
// to use it says so: "kind = {removed} AND kind > {rareAfter}".
const RareAfter = KindFailed

const nameInSQL = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"

// SQL returns text with the numbers of the kinds and states that it names: "{failed}" and "{state:blocked}";
// "{kinds:signOfLife}" is a list, "2, 3, 4". An unknown name panics, so SQL belongs in a variable of a
// package: then every test of a program that contains it finds the mistake. It runs at each start of the
// program, so it uses no regular expression.
func SQL(text string) string {
	var made strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		made.WriteString(before)
		if !found {
			return made.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		if text = after; name == "" || strings.Trim(name, nameInSQL) != "" { // it is JSON
			made.WriteString("{")
			text = rest
			continue
		}
		made.WriteString(numberInSQL(name))
	}
}

func numberInSQL(name string) string {
	of, word, two := strings.Cut(name, ":")
	switch {
	case of == "state" && two:
		if s, err := ParseState(word); err == nil {
			return strconv.Itoa(int(s))
		}
	case of == "kinds" && listsInSQL[word] != nil:
		var numbers []string
		for _, k := range KindsThat(listsInSQL[word]) {
			numbers = append(numbers, strconv.Itoa(int(k)))
		}
		return strings.Join(numbers, ", ")
	case name == "rareAfter":
		return strconv.Itoa(int(RareAfter))
	case !two:
		if k, err := ParseKind(name); err == nil {
			return strconv.Itoa(int(k))
		}
	}
	panic(fmt.Sprintf("event: SQL names {%s}", name))
}

// listsInSQL are the facts by which SQL selects.
var listsInSQL = map[string]func(Kind) bool{
	"signOfLife": Kind.IsSignOfLife,
	"keepsClaim": Kind.KeepsClaim,
	"withBody":   Kind.HasBody,
	"ofAllJobs":  Kind.OfAllJobs,
}
