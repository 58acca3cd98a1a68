package event

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// RareAfter is the kind after which all are rare. The index rare_events has those only, and a query that is
// to use it says so: "kind = {removed} AND kind > {rareAfter}".
const RareAfter = KindFailed

var nameInSQL = regexp.MustCompile(`\{(?:(\w+):)?(\w+)\}`)

// SQL returns text with the numbers of the kinds and states that it names: "{failed}" and "{state:blocked}";
// "{kinds:signOfLife}" is a list, "2, 3, 4". A name that is not known panics, so SQL belongs in a variable of
// a package: then every test of a program that has it finds that.
func SQL(text string) string {
	return nameInSQL.ReplaceAllStringFunc(text, func(found string) string {
		name := nameInSQL.FindStringSubmatch(found)
		switch of, word := name[1], name[2]; {
		case of == "state":
			if s, err := ParseState(word); err == nil {
				return strconv.Itoa(int(s))
			}
		case of == "kinds" && listsInSQL[word] != nil:
			var numbers []string
			for _, k := range KindsThat(listsInSQL[word]) {
				numbers = append(numbers, strconv.Itoa(int(k)))
			}
			return strings.Join(numbers, ", ")
		case of == "" && word == "rareAfter":
			return strconv.Itoa(int(RareAfter))
		case of == "":
			if k, err := ParseKind(word); err == nil {
				return strconv.Itoa(int(k))
			}
		}
		panic(fmt.Sprintf("event: SQL names %s", found))
	})
}

// listsInSQL are the facts by which SQL selects.
var listsInSQL = map[string]func(Kind) bool{
	"signOfLife": Kind.IsSignOfLife,
	"keepsClaim": Kind.KeepsClaim,
	"withBody":   Kind.HasBody,
	"ofAllJobs":  Kind.OfAllJobs,
}
