package hostile

import "testing"

// One attempt is one request in clear text, too, as a sidecar speaks it, also if the transport is wrapped.
func TestNothingIsSentAgainInClearText(t *testing.T) {
	t.Parallel()
	oneRequestEach(t, "clear text", "REFUSED_STREAM", "INTERNAL_ERROR")
	oneRequestEach(t, "clear text, wrapped", "REFUSED_STREAM", "INTERNAL_ERROR")
}
