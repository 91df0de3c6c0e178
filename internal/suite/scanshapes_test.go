package suite_test

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// scanShapes compare structs of few and many fields, of all kinds.
var scanShapes = map[string]func(t *testing.T, seed uint64){
	"wide":                      comparing[scanWide],
	"two":                       comparing[scanTwo],
	"pointers":                  comparing[scanPointers],
	"columns of several fields": comparing[scanTwice],
	"embedded":                  comparing[scanEmbedding],
	"text unmarshalers":         comparing[scanOwn],
}

type (
	scanWord  string
	scanBytes uint64
	scanTemp  int16
	scanRatio float32
	scanFlag  bool
)

// Unmarshalers as callers write them. ownParts adds to what it holds, and ownMemory reuses its memory. ownAppend appends
// to the text that it gets, and ownHex rejects most texts.
type (
	ownParts  struct{ parts []string }
	ownMemory []byte
	ownAppend string
	ownHex    uint32
)

func (o *ownParts) UnmarshalText(text []byte) error {
	o.parts = append(o.parts, strings.Split(string(text), "-")...)
	return nil
}

func (o *ownMemory) UnmarshalText(text []byte) error {
	*o = append((*o)[:0], text...)
	return nil
}

func (o *ownAppend) UnmarshalText(text []byte) error {
	*o = ownAppend(append(text, "[,,,,,,,,,,,,]"...))
	return nil
}

func (o *ownHex) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 32)
	*o = ownHex(n)
	return err
}

type scanWide struct {
	Text    string     `stats:"text"`
	Time    time.Time  `stats:"time"`
	Word    scanWord   `stats:"word"`
	Int     int        `stats:"int"`
	Int8    int8       `stats:"int8"`
	Addr    netip.Addr `stats:"addr"`
	Left    string
	Int16   int16             `stats:"int16"`
	Int32   int32             `stats:"int32"`
	Int64   int64             `stats:"int64"`
	Uint    uint              `stats:"uint"`
	Uint8   uint8             `stats:"uint8"`
	Uint16  uint16            `stats:"uint16"`
	Uint32  uint32            `stats:"uint32"`
	Uint64  uint64            `stats:"uint64"`
	Uintptr uintptr           `stats:"uintptr"`
	Yes     bool              `stats:"yes"`
	Single  float32           `stats:"single"`
	Double  float64           `stats:"double"`
	Number  json.Number       `stats:"number"`
	Prefix  netip.Prefix      `stats:"prefix"`
	Port    netip.AddrPort    `stats:"port"`
	Any     webdelivery.Value `stats:"any"`
	Own     ownMemory         `stats:"own"`
	Big     big.Int           `stats:"big"`
	Bytes   scanBytes         `stats:"bytes"`
	Temp    scanTemp          `stats:"temp"`
	Ratio   scanRatio         `stats:"ratio"`
	Flag    scanFlag          `stats:"flag"`
	PText   *string           `stats:"ptext"`
	PTime   *time.Time        `stats:"ptime"`
	PAddr   *netip.Addr       `stats:"paddr"`
	PInt    *int64            `stats:"pint"`
	Never   string            `stats:"-"`
}

type scanTwo struct {
	At   time.Time `stats:"event_timestamp_ms"`
	Hits int64     `stats:"hits"`
}

type scanPointers struct {
	S   *string            `stats:"s"`
	SS  **string           `stats:"ss"`
	SSS ***scanWord        `stats:"sss"`
	T   **time.Time        `stats:"t"`
	A   **netip.Addr       `stats:"a"`
	I   *int               `stats:"i"`
	U   **uint8            `stats:"u"`
	F   *float32           `stats:"f"`
	B   **bool             `stats:"b"`
	V   *webdelivery.Value `stats:"v"`
	M   **ownMemory        `stats:"m"`
	S2  *string            `stats:"s2"`
}

type scanTwice struct {
	IP      netip.Addr        `stats:"ip"`
	IPText  string            `stats:"ip"`
	IPMaybe *netip.Addr       `stats:"ip"`
	Small   int8              `stats:"small"`
	Wide    int64             `stats:"small"`
	Double  float64           `stats:"small"`
	Digits  json.Number       `stats:"small"`
	As      string            `stats:"small"`
	At      time.Time         `stats:"at"`
	AtText  *string           `stats:"at"`
	AtWhole webdelivery.Value `stats:"at"`
	Maybe   *string           `stats:"maybe"`
	Whole   webdelivery.Value `stats:"maybe"`
	A       string            `stats:"a"`
	B       scanWord          `stats:"a"`
	C       string            `stats:"a"`
	D       ownMemory         `stats:"a"`
	Yes     bool              `stats:"yes"`
	YesText string            `stats:"yes"`
}

type scanInner struct {
	Country string `stats:"country"`
	Inner   string `stats:"name of the inner"`
	Rest    int
	scanInnermost
}

type scanInnermost struct {
	ASN    uint32    `stats:"asn"`
	Seen   time.Time `stats:"seen"`
	Number int       `stats:"country of the innermost"`
}

type scanEmbedding struct {
	Name string `stats:"name"`
	scanInner
	After    *string `stats:"after"`
	Severity `stats:"severity"`
	Last     netip.Addr `stats:"last"`
}

// Severity is embedded with a tag, so it is a field itself.
type Severity string

type scanOwn struct {
	Parts  ownParts  `stats:"parts"`
	Memory ownMemory `stats:"memory"`
	Append ownAppend `stats:"append"`
	Behind string    `stats:"behind"`
	Hex    ownHex    `stats:"hex"`
	Big    big.Int   `stats:"big"`
	PParts *ownParts `stats:"pparts"`
	PHex   *ownHex   `stats:"phex"`
	PBig   **big.Int `stats:"pbig"`
}
