package program

import (
	"fmt"
	"strings"

	"github.com/webdelivery/webdelivery-go"
)

// Show replaces the last text on a terminal; "" removes it. If Err is not a terminal, Show does nothing. Only one
// goroutine at a time may call it.
func (s Streams) Show(text string) {
	if s.ErrTerminal {
		fmt.Fprintf(s.Err, "\r%s\x1b[K", text) // \x1b[K clears the rest of the line
	}
}

// ShowPoll shows the progress of a wait. If the poll failed, it adds the reason.
func (s Streams) ShowPoll(text string, poll webdelivery.Progress) {
	if poll.Err != nil {
		text += "; polling again after: " + poll.Err.Error()
	}
	s.Show(text)
}

// Bar returns a progress bar for Show.
func Bar(percent int) string {
	const width = 30
	done := width * min(max(percent, 0), 100) / 100
	return fmt.Sprintf("[%s%s] %3d %%", strings.Repeat("#", done), strings.Repeat(".", width-done), percent)
}
