package lists

import "strings"

// countries holds the 249 officially assigned codes of ISO 3166-1 alpha-2: for each first letter, its second letters.
// Codes that are only reserved (EU, UK), left to users (XK) or withdrawn (AN, CS, SU, YU) are not among them.
var countries = [...]string{
	'A' - 'A': "DEFGILMOQRSTUWXZ",
	'B' - 'A': "ABDEFGHIJLMNOQRSTVWYZ",
	'C' - 'A': "ACDFGHIKLMNORUVWXYZ",
	'D' - 'A': "EJKMOZ",
	'E' - 'A': "CEGHRST",
	'F' - 'A': "IJKMOR",
	'G' - 'A': "ABDEFGHILMNPQRSTUWY",
	'H' - 'A': "KMNRTU",
	'I' - 'A': "DELMNOQRST",
	'J' - 'A': "EMOP",
	'K' - 'A': "EGHIMNPRWYZ",
	'L' - 'A': "ABCIKRSTUVY",
	'M' - 'A': "ACDEFGHKLMNOPQRSTUVWXYZ",
	'N' - 'A': "ACEFGILOPRUZ",
	'O' - 'A': "M",
	'P' - 'A': "AEFGHKLMNRSTWY",
	'Q' - 'A': "A",
	'R' - 'A': "EOSUW",
	'S' - 'A': "ABCDEGHIJKLMNORSTVXYZ",
	'T' - 'A': "CDFGHJKLMNORTVWZ",
	'U' - 'A': "AGMSYZ",
	'V' - 'A': "ACEGINU",
	'W' - 'A': "FS",
	'Y' - 'A': "ET",
	'Z' - 'A': "AMW",
}

// isCountry reports whether an upper-case code is assigned in ISO 3166-1 alpha-2.
func isCountry(code string) bool {
	return len(code) == len("DE") && 'A' <= code[0] && int(code[0]-'A') < len(countries) &&
		strings.IndexByte(countries[code[0]-'A'], code[1]) >= 0
}
