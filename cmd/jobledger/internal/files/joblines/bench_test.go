package joblines

import (
	"strings"
	"testing"
	"time"

	"jobledger/commands"
)

// BenchmarkJob reads lines as producers write them: with short text, with text of other letters, with an
// object as payload, and with much of it.
func BenchmarkJob(b *testing.B) {
	for name, line := range map[string]string{
		"text":    `{"queue":"mail","key":"order-17","payload":"ada@example.com","tags":{"customer":"17"}}`,
		"umlauts": `{"queue": "mail", "key": "order-17", "payload": "Grüße an Jürgen, schöne Feiertage"}`,
		"object":  `{"queue":"mail","key":"order-17","payload":{"to":"ada","lines":[1,2,{"n":"x"}]},"priority":3}`,
		"large":   `{"queue":"mail","payload":"` + strings.Repeat("0123456789abcdef", 4096) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			r := Reader{Defaults: commands.Enqueue{MaxAttempts: 5}, Now: time.Now()}
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			text := []byte(line)
			for b.Loop() {
				if _, err := r.Job(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
