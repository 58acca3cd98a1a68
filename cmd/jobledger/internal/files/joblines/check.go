package joblines

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"

	"jobledger/cmd/jobledger/internal/fault"
	"jobledger/commands"
)

// compared is how many keys are compared with each other before anything is written.
const compared = 1 << 20

// Check returns how many jobs content has, or what is wrong with the first bad line: alone, compared with the
// lines before it, or with what the ledger of service holds. Without a service there is no ledger yet.
// progress hears of the jobs that were checked. Nothing is written.
func (r Reader) Check(ctx context.Context, content io.Reader, service *commands.Service,
	progress func(jobs int)) (total int, err error) {
	var keys earlierKeys
	for chunk, err := range r.Chunks(content) {
		if err != nil {
			return 0, err
		}
		for i, e := range chunk.Jobs {
			if !keys.add(e) {
				return 0, fault.Exitf(fault.ExitConflict, "line %d: key %q stands in an earlier line too, with another "+
					"payload", chunk.Lines[i], e.Key)
			}
		}
		if service != nil {
			if i, err := service.CheckKeys(ctx, chunk.Jobs); err != nil {
				if i >= 0 {
					err = fmt.Errorf("line %d: %w", chunk.Lines[i], err)
				}
				return 0, err
			}
		}
		total += len(chunk.Jobs)
		progress(len(chunk.Jobs))
	}
	return total, nil
}

// earlierKeys holds the hashes of the payloads of earlier lines, by those of queue and key: a file may have
// millions.
type earlierKeys struct {
	seed     maphash.Seed
	payloads map[uint64]uint64
}

// add notes the key of e; it reports false if an earlier line has it with another payload. A conflict of
// lines that are far apart is found when it is written.
func (k *earlierKeys) add(e commands.Enqueue) bool {
	if e.Key == "" || e.UniqueWhile != "" {
		return true
	}
	if k.payloads == nil {
		k.seed, k.payloads = maphash.MakeSeed(), make(map[uint64]uint64)
	}
	key, payload := maphash.String(k.seed, e.Queue+" "+e.Key), maphash.Bytes(k.seed, e.Payload)
	if before, ok := k.payloads[key]; ok && before != payload {
		return false
	}
	if len(k.payloads) == compared {
		clear(k.payloads)
	}
	k.payloads[key] = payload
	return true
}
