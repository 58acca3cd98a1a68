package schema_test

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// banned are words and phrases that do not belong in code, comments, SQL or documentation, with what to write
// instead. They are whole words, in upper or lower case. The glossary has the words of the field.
var banned = map[string]string{
	"nobody": "no process, no worker, never", "somebody": "a worker, a user", "someone": "a worker, a user",
	"everybody": "every user, all", "whoever": "a user who, a process that", "whomever": "a user whom",
	"anew": "again", "in vain": "spurious, without result", "of no account": "harmless, not needed",
	"stands there": "is there", "stand there": "are there", "as things stand": "now", "hearsay": "a report",
	"by itself": "alone, automatically", "by themselves": "alone, automatically", "beside": "next to, besides",
	"lured": "woken early", "wary": "careful", "outrun": "contention", "setback": "failure, retry state",
	"obstacle": "diagnosis, cause", "goodbye": "stop", "turnstile": "write queue",
	"mend": "repair", "mends": "repairs", "mended": "repaired", "put right": "repaired, corrected",
	"tale": "scenario", "tales": "scenarios", "story": "scenario", "stories": "scenarios",
	"tell": "report, describe", "tells": "reports, says", "told": "reported, given",
	"together": "in one transaction, at the same time", "standing": "head, state", "shift": "worker loop",
	"hands": "clients, goroutines", "settle": "drain, finish", "settles": "drains", "settled": "drained",
	"seize": "lock", "seized": "locked", "seizes": "locks", "stretch": "window", "weigh": "precheck",
	"weighs": "prechecks", "unfinished": "staging, partial, not ended", "usual": "implicit default, normal",
	"silence": "keepalive, missing heartbeats",
}

// bannedNames are identifiers, or parts of them at a change of case, with the names that took their place.
var bannedNames = map[string]string{
	"hangBell":    "subscribe",
	"deafen":      "unsubscribe",
	"needsTurn":   "pollDue",
	"Seize":       "LockExclusive",
	"Seized":      "ExclusiveLock",
	"passAway":    "renameGrace",
	"Mended":      "Repaired",
	"DecideLate":  "decideStale",
	"errStale":    "errTokenNotLive",
	"errGone":     "errEvidenceStale",
	"errNothing":  "errNoChange",
	"likeFile":    "copyOwner",
	"collectLess": "tuneGC",
	"newTale":     "newScenario",
	"setback":     "retryState",
	"lured":       "sawReady",
	"wary":        "spuriousWake",
	"outrun":      "contention",
	"cutBack":     "truncate",
	"ownSent":     "flushed",
	"Unheard":     "Unacknowledged",
	"ErrStray":    "ErrForeignSidecar",
	"nobodyLeft":  "noProcessLeft",
	"asNobody":    "asUnprivileged",
	"turnstile":   "writeQueue",
}

// exempt takes out what has to be: a JSON key that is for ever, the name of a Unix user, a value of
// --unique-while, and one of OpenTelemetry's messaging.operation.type.
var exempt = strings.NewReplacer(`json:"mended"`, "", `"nobody"`, "", `"settle"`, "", `"unfinished"`, "",
	"'unfinished'", "", "`unfinished`", "", "or unfinished", "", "--unique-while unfinished", "",
	"queued|unfinished", "")

// patterns are turns of phrase that stop a native reader, with what to write instead; rightPhrases are those
// that only look like one.
var (
	patterns = []struct {
		has     string // in lower case: a line without it need not be matched
		phrase  *regexp.Regexp
		instead string
	}{
		{" no ", regexp.MustCompile(`(?i)\b(is|was|be) no \w+`), "is not a …"},
		{"exclude each other", regexp.MustCompile(`["\x60'].*exclude each other`), "… cannot be combined"},
		{"of before", regexp.MustCompile(`(?i)\bof before\b`), "old, earlier, older than"},
		{"for otherwise", regexp.MustCompile(`(?i)\bfor otherwise\b`), "otherwise"},
		{" no other", regexp.MustCompile(`(?i)\bsays? no other\b`), "set nothing themselves"},
		{"is the way back", regexp.MustCompile(`\bis the way back\b`), "restore …"},
		{", also ", regexp.MustCompile(`, also (where|after|if|when|while)\b`), "even if …"},
		{"where ", regexp.MustCompile(
			`(^|[.;:] |// )Where (it|there|that|this|one|no|they|these|some|nothing|all)\b`), "If …"},
	}
	rightPhrases = regexp.MustCompile(`(?i)\b(there|here)( \w+)? (is|was|be|been) no \w+|` +
		`\b(is|was|be) no (longer|more|less|later|larger|better|worse|other|sooner)\b`)
)

// longest is how many columns a line of Go may have; a tab counts as one.
const longest = 110

func TestWordsBanned(t *testing.T) {
	var names, words []string
	for name := range bannedNames {
		names = append(names, name)
	}
	last := make(map[string]bool) // the last words of all: a line that has none of them need not be matched
	for word := range banned {
		words = append(words, strings.ReplaceAll(word, " ", `\s+`))
		last[word[strings.LastIndexByte(word, ' ')+1:]] = true
	}
	noLetter := func(r rune) bool { return r < 'a' || r > 'z' }
	isLast := func(word string) bool { return last[word] }
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	slices.Sort(names)
	word := regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	name := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
	space := regexp.MustCompile(`\s+`)
	eachFile(t, []string{".go", ".md", ".sql"}, func(file, text string) {
		if path.Base(file) == "words_test.go" || migration.MatchString(path.Base(file)) {
			return
		}
		named := strings.HasSuffix(file, ".go") &&
			slices.ContainsFunc(names, func(n string) bool { return strings.Contains(text, n) })
		for i, line := range strings.Split(text, "\n") {
			lower := strings.ToLower(line)
			place := file + ":" + strconv.Itoa(i+1)
			if slices.ContainsFunc(strings.FieldsFunc(lower, noLetter), isLast) {
				for _, w := range word.FindAllString(exempt.Replace(line), -1) {
					instead := banned[strings.ToLower(space.ReplaceAllString(w, " "))]
					t.Errorf("%s: %s: write %s", place, w, instead)
				}
			}
			for _, p := range patterns {
				if !strings.Contains(lower, p.has) {
					continue
				}
				if w := p.phrase.FindString(rightPhrases.ReplaceAllString(line, "")); w != "" {
					t.Errorf("%s: %s: write %s", place, w, p.instead)
				}
			}
			if !named {
				continue
			}
			for _, n := range name.FindAllString(line, -1) {
				t.Errorf("%s: %s: write %s", place, n, bannedNames[n])
			}
		}
	})
}

// TestWordsBannedInScripts checks the comments of the scripts; what they run and match is not prose.
func TestWordsBannedInScripts(t *testing.T) {
	var words []string
	for word := range banned {
		words = append(words, strings.ReplaceAll(word, " ", `\s+`))
	}
	word := regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	scripts := os.DirFS(filepath.Join("..", "testdata", "script"))
	checked := 0
	err := fs.WalkDir(scripts, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".txtar" {
			return err
		}
		text, err := fs.ReadFile(scripts, file)
		for i, line := range strings.Split(string(text), "\n") {
			if comment, ok := strings.CutPrefix(line, "#"); ok {
				checked++
				for _, w := range word.FindAllString(comment, -1) {
					t.Errorf("%s:%d: %s: write %s", file, i+1, w, banned[strings.ToLower(w)])
				}
			}
		}
		return err
	})
	if err != nil || checked == 0 {
		t.Fatalf("%d comments were checked: %v", checked, err)
	}
}

func TestLinesLength(t *testing.T) {
	eachFile(t, []string{".go"}, func(file, text string) {
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > longest {
				t.Errorf("%s:%d: %d columns, want at most %d", file, i+1, n, longest)
			}
		}
	})
}

// migration is the name of a file that has shipped and is never edited.
var migration = regexp.MustCompile(`^\d{4}_\w+\.sql$`)
