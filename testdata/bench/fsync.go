package main

import (
	"os"
	"time"
)

// fsyncRate returns how many times a second the disk of dir makes an overwritten 4 KiB page durable, measured
// for a short while: what a queue with one durable commit at a time cannot exceed.
func fsyncRate(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()

	page := make([]byte, 4096)
	return rateOf(func(n int) error { // the first one also allocates
		page[0] = byte(n)
		if _, err := f.WriteAt(page, 0); err != nil {
			return err
		}
		return f.Sync()
	})
}

// rateOf returns how many times a second fn can be done, measured for a short while. The first time does not
// count.
func rateOf(fn func(n int) error) (float64, error) {
	n, start := 0, time.Now()
	for ; time.Since(start) < 250*time.Millisecond; n++ {
		if err := fn(n); err != nil {
			return 0, err
		}
		if n == 0 {
			start = time.Now()
		}
	}
	return float64(n-1) / time.Since(start).Seconds(), nil
}
