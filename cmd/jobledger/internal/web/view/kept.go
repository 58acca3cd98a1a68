package view

import (
	"sync"
	"time"
)

// Kept is a value that is read once for all who ask within a short time: twenty times as long as it took, so
// that a twentieth of a processor at most goes into it. It is safe for concurrent use; the zero value is
// ready.
type Kept[T any] struct {
	mu   sync.Mutex
	last T
	at   time.Time // on the monotonic clock; zero: there is none
	cost time.Duration
}

// Read returns the value, by read where there is none that is young enough: at least as young as least, even
// where it took no time. While another reads it, it waits for that.
func (k *Kept[T]) Read(least time.Duration, read func() (T, error)) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.at.IsZero() && time.Since(k.at) < max(least, shareOfFigures*k.cost) {
		return k.last, nil
	}
	began := time.Now()
	value, err := read()
	if err != nil {
		return value, err
	}
	k.last, k.at, k.cost = value, time.Now(), time.Since(began)
	return value, nil
}
