package hostile

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"
)

// planVariable holds the Plan of a process that is a server, in JSON.
const planVariable = "HOSTILE_PLAN"

// Server is a server in its own process.
type Server struct {
	Addr  string         // on 127.0.0.1
	Roots *x509.CertPool // verify the server's certificate

	cmd    *exec.Cmd
	stdin  io.Closer
	report *json.Decoder
}

// The messages that a server writes to its standard output: hello at its start, a list of arrivals at its end.
type hello struct {
	Addr        string `json:"addr"`
	Certificate []byte `json:"certificate"` // of the authority
}

// Start starts a server in its own process. The process ends with Stop, or at the latest with ctx or the caller's
// process.
func Start(ctx context.Context, plan Plan) (*Server, error) {
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), planVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{cmd: cmd, stdin: stdin, report: json.NewDecoder(stdout), Roots: x509.NewCertPool()}
	var h hello
	if err := s.report.Decode(&h); err != nil {
		_ = stdin.Close()
		return nil, fmt.Errorf("no hello of the server: %w", errors.Join(err, cmd.Wait()))
	}
	certificate, err := x509.ParseCertificate(h.Certificate)
	if err != nil {
		_ = stdin.Close()
		return nil, errors.Join(err, cmd.Wait())
	}
	s.Addr = h.Addr
	s.Roots.AddCert(certificate)
	return s, nil
}

// Stop ends the server. It returns the times at which the heads of purge requests arrived, in order, since the server's
// start.
func (s *Server) Stop() (arrivals []time.Duration, err error) {
	_ = s.stdin.Close()
	err = s.report.Decode(&arrivals)
	return arrivals, errors.Join(err, s.cmd.Wait())
}

// RunChild makes the process a server if Start started it, and returns true at its end. Otherwise it returns false at
// once.
func RunChild() bool {
	text := os.Getenv(planVariable)
	if text == "" {
		return false
	}
	if err := runChild(text); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
	return true
}

func runChild(text string) error {
	var plan Plan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return err
	}
	authority := newAuthority()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	arrivals := &record{steps: plan.Steps, began: time.Now()}
	var serve func(net.Listener)
	switch plan.Protocol {
	case HTTP1:
		serve = http1Server(arrivals, nil)
	case HTTP1TLS:
		serve = http1Server(arrivals, authority.issue(nil))
	case HTTP2:
		serve = http2Server(arrivals, authority.issue(nil))
	default:
		return fmt.Errorf("unknown protocol %q", plan.Protocol)
	}
	go serve(listener)
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(hello{listener.Addr().String(), authority.certificate.Raw}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until Stop closes it, or the caller's process ends
	return out.Encode(arrivals.take())
}
