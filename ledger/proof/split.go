package proof

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// signatureMark begins the line of a signature.
const signatureMark = "— "

// SplitCheckpoints returns the texts of the checkpoints in a file to which they were appended, one after the
// other. It does not check signatures. What follows a line that begins with "# ", as no name does, is a
// comment. Errors wrap [ErrInvalid].
func SplitCheckpoints(file []byte) (texts [][]byte, err error) {
	rest := file
	for len(rest) > 0 && !bytes.HasPrefix(rest, []byte("# ")) {
		end := bytes.Index(rest, []byte("\n\n"))
		if end < 0 {
			return nil, fmt.Errorf("%w: checkpoint %d of the file has no end", ErrInvalid, len(texts)+1)
		}
		end += 2
		for bytes.HasPrefix(rest[end:], []byte(signatureMark)) {
			line := bytes.IndexByte(rest[end:], '\n')
			if line < 0 {
				return nil, fmt.Errorf("%w: checkpoint %d of the file has no end", ErrInvalid, len(texts)+1)
			}
			end += line + 1
		}
		if _, err := ParseCheckpoint(rest[:end]); err != nil {
			return nil, fmt.Errorf("checkpoint %d of the file: %w", len(texts)+1, err)
		}
		texts, rest = append(texts, rest[:end:end]), rest[end:]
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%w: there is no checkpoint in the file", ErrInvalid)
	}
	return texts, nil
}

// Signers returns the names of the keys that the text of a checkpoint says it is signed with, unchecked.
func Signers(text []byte) (names []string) {
	_, signatures, _ := bytes.Cut(text, []byte("\n\n"))
	for line := range bytes.Lines(signatures) {
		if rest, ok := strings.CutPrefix(string(line), signatureMark); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return names
}

// SignedBy reports whether the text of a checkpoint is signed with a public key, NAME+HASH+KEY.
func SignedBy(text []byte, key string) bool {
	verifier, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return false
	}
	_, err = note.Open(text, note.VerifierList(verifier))
	return err == nil
}
