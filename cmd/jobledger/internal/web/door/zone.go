package door

import (
	"context"
	"time"
)

// zoneKey is the key of the zone in a context.
type zoneKey struct{}

// InZone returns ctx for a request whose answer has times in zone; a time without a zone is read in it.
func InZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// In is t in the zone of the request of ctx; unchanged if the request has none.
func In(ctx context.Context, t time.Time) time.Time {
	if zone, ok := ctx.Value(zoneKey{}).(*time.Location); ok {
		return t.In(zone)
	}
	return t
}
