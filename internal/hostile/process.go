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
	"strconv"
	"time"
)

// planVariable holds the Plan of a process that is a server, in JSON.
const planVariable = "HOSTILE_PLAN"

// Server is a server in its own process.
type Server struct {
	// Port is open on 127.0.0.1 and, if HasIPv6, on ::1.
	Port    int
	HasIPv6 bool
	// Roots verify the server's certificate. It names localhost, 127.0.0.1 and ::1.
	Roots *x509.CertPool

	cmd    *exec.Cmd
	stdin  io.Closer
	report *json.Decoder
}

// The messages that a server writes to its standard output: hello at its start, a list of arrivals at its end.
type hello struct {
	Port        int    `json:"port"`
	HasIPv6     bool   `json:"has_ipv6"`
	Certificate []byte `json:"certificate"`
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
	s.Port, s.HasIPv6 = h.Port, h.HasIPv6
	s.Roots.AddCert(certificate)
	return s, nil
}

// Addr is the server's address on 127.0.0.1.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

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
	certificate, err := newCertificate()
	if err != nil {
		return err
	}
	listeners, err := listen()
	if err != nil {
		return err
	}
	arrivals := &record{steps: plan.Steps, began: time.Now()}
	var serve func(net.Listener)
	switch plan.Protocol {
	case HTTP1:
		serve = http1Server(arrivals, nil)
	case HTTP1TLS:
		serve = http1Server(arrivals, &certificate)
	case HTTP2:
		serve = http2Server(arrivals, certificate)
	default:
		return fmt.Errorf("unknown protocol %q", plan.Protocol)
	}
	for _, l := range listeners {
		go serve(l)
	}
	out := json.NewEncoder(os.Stdout)
	err = out.Encode(hello{
		Port:        listeners[0].Addr().(*net.TCPAddr).Port,
		HasIPv6:     len(listeners) > 1,
		Certificate: certificate.Certificate[0],
	})
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until Stop closes it, or the caller's process ends
	return out.Encode(arrivals.take())
}

// listen opens one port on 127.0.0.1 and on ::1, or only on 127.0.0.1 if the machine has no IPv6.
func listen() ([]net.Listener, error) {
	open := func(host, port string) (net.Listener, error) {
		return new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, port))
	}
	v6, noIPv6 := open("::1", "0")
	for range 10 { // another program may have the port on 127.0.0.1
		if noIPv6 != nil {
			v4, err := open("127.0.0.1", "0")
			return []net.Listener{v4}, err
		}
		_, port, _ := net.SplitHostPort(v6.Addr().String())
		if v4, err := open("127.0.0.1", port); err == nil {
			return []net.Listener{v4, v6}, nil
		}
		_ = v6.Close()
		v6, noIPv6 = open("::1", "0")
	}
	return nil, errors.New("no port is free on both 127.0.0.1 and ::1")
}
