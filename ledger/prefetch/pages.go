package prefetch

import "iter"

// Pages yields what next makes, until that fails or makes less than a full page. It calls next in a goroutine
// of its own, with one of two pages: one is filled while the caller reads the other.
func Pages[T any](full int, next func(page []T) ([]T, error)) iter.Seq2[[]T, error] {
	type filled struct {
		page []T
		err  error
	}
	return func(yield func([]T, error) bool) {
		pages, empty, stop := make(chan filled), make(chan []T, 2), make(chan struct{})
		empty <- nil
		empty <- nil
		go func() {
			defer close(pages)
			for {
				var f filled
				select {
				case page := <-empty:
					f.page, f.err = next(page)
				case <-stop:
					return
				}
				select {
				case pages <- f:
				case <-stop:
					return
				}
				if f.err != nil || len(f.page) < full {
					return
				}
			}
		}()
		defer func() {
			close(stop)
			for range pages { // until it is closed
			}
		}()
		for f := range pages {
			if !yield(f.page, f.err) || f.err != nil {
				return
			}
			empty <- f.page
		}
	}
}
