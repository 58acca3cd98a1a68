package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"jobledger/cmd/jobledger/internal/web/door"
)

// SetTag sets the tag of a job as it is now: its seq, and a digest. The seq alone says which state it is, for
// If-Match. The digest is for If-None-Match: what is answered also changes where payload and result are
// erased, and with the rights of the caller, and restore may give a seq to another event. What is set of a
// queue has the position of the event that set it in place of a seq.
func SetTag(h http.Header, seq int64, line []byte) {
	sum := sha256.Sum256(line)
	h.Set("ETag", fmt.Sprintf(`"%d.%s"`, seq, hex.EncodeToString(sum[:8])))
}

// SeqsOf reads the header If-Match: the seqs of a job that it names; nil where any will do. The header may
// have the full tag of the job, or its seq alone, as in "3". A weak tag, as an answer about the past has it,
// and a tag of something else name none.
func SeqsOf(header string) (seqs []int64, err error) {
	header = strings.TrimSpace(header)
	if header == "" || header == "*" {
		return nil, nil
	}
	seqs = []int64{}
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		strong, weak := strings.CutPrefix(one, "W/")
		text := strings.TrimSuffix(strings.TrimPrefix(strong, `"`), `"`)
		number, _, _ := strings.Cut(text, ".")
		number, _, _ = strings.Cut(number, "-")
		seq, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err == nil && seq > 0 && !weak:
			seqs = append(seqs, seq)
		case strong != `"`+text+`"`:
			return nil, door.BadInput("If-Match",
				`If-Match is the ETag of the job, or its seq, as in "3"`)
		}
	}
	return seqs, nil
}
