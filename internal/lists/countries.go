package lists

import "strings"

// countries holds the 249 officially assigned codes of ISO 3166-1 alpha-2: for each first letter, its second letters.
// Codes that are only reserved (EU, UK), left to users (XK) or withdrawn (AN, CS, SU, YU) are not among them.
var countries = [...]string{
	"DEFGILMOQRSTUWXZ",        // A
	"ABDEFGHIJLMNOQRSTVWYZ",   // B
	"ACDFGHIKLMNORUVWXYZ",     // C
	"EJKMOZ",                  // D
	"CEGHRST",                 // E
	"IJKMOR",                  // F
	"ABDEFGHILMNPQRSTUWY",     // G
	"KMNRTU",                  // H
	"DELMNOQRST",              // I
	"EMOP",                    // J
	"EGHIMNPRWYZ",             // K
	"ABCIKRSTUVY",             // L
	"ACDEFGHKLMNOPQRSTUVWXYZ", // M
	"ACEFGILOPRUZ",            // N
	"M",                       // O
	"AEFGHKLMNRSTWY",          // P
	"A",                       // Q
	"EOSUW",                   // R
	"ABCDEGHIJKLMNORSTVXYZ",   // S
	"CDFGHJKLMNORTVWZ",        // T
	"AGMSYZ",                  // U
	"ACEGINU",                 // V
	"FS",                      // W
	"",                        // X
	"ET",                      // Y
	"AMW",                     // Z
}

// isCountry reports whether an upper-case code is assigned in ISO 3166-1 alpha-2.
func isCountry(code string) bool {
	return len(code) == len("DE") && 'A' <= code[0] && int(code[0]-'A') < len(countries) &&
		strings.IndexByte(countries[code[0]-'A'], code[1]) >= 0
}
