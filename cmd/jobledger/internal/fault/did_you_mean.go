package fault

import "github.com/xrash/smetrics"

// Nearest returns the candidate most similar to word, or "" if none is similar.
func Nearest(word string, candidates []string) string {
	const near = 0.85 // "enqeue" 0.96, "stats" for "status" 0.97, "foo" for "for" 0.82
	best, found := near, ""
	for _, c := range candidates {
		if score := smetrics.JaroWinkler(word, c, 0.7, 4); score >= best {
			best, found = score, c
		}
	}
	return found
}
