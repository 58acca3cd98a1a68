package door

import (
	"context"
	"time"
)

// zoneKey is that of the zone in a context.
type zoneKey struct{}

// InZone is ctx of a request whose answer has times in zone, and in which a time without one is read.
func InZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// In is t in the zone of the request of ctx, or as it is where that has none.
func In(ctx context.Context, t time.Time) time.Time {
	if zone, ok := ctx.Value(zoneKey{}).(*time.Location); ok {
		return t.In(zone)
	}
	return t
}
