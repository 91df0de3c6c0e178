package testserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// parsePurge reads the body of a purge request. It applies the rules of sections 2.2 and 4.4 of the service document
// that need no knowledge of the customer.
func parsePurge(body []byte) (action string, uris []PurgeURI, err error) {
	outer, err := readObject(body, "purge_request")
	if err != nil {
		return "", nil, err
	}
	if outer["purge_request"] == nil {
		return "", nil, errors.New("purge_request is missing")
	}
	inner, err := readObject(outer["purge_request"], "action", "uris")
	if err != nil {
		return "", nil, fmt.Errorf("purge_request: %w", err)
	}
	if action, err = readString("action", inner["action"]); err != nil {
		return "", nil, err
	}
	if action != "PURGE" && action != "EXPIRE" {
		return "", nil, fmt.Errorf("action %q is neither PURGE nor EXPIRE", action)
	}
	items, err := readArray("uris", inner["uris"])
	if err != nil {
		return "", nil, err
	}
	if len(items) == 0 {
		return "", nil, errors.New("uris is empty")
	}
	for i, item := range items {
		uri, err := parsePurgeURI(item)
		if err != nil {
			return "", nil, fmt.Errorf("uris[%d]: %w: uri_pattern %q", i, err, uri.URIPattern)
		}
		uris = append(uris, uri)
	}
	return action, uris, nil
}

// parsePurgeURI returns the pattern even with an error, as far as it could be read.
func parsePurgeURI(raw []byte) (uri PurgeURI, err error) {
	members, err := readObject(raw, "match_mode", "uri_pattern", "cache_key_modifier_regex")
	if err != nil {
		return uri, err
	}
	if uri.URIPattern, err = readString("uri_pattern", members["uri_pattern"]); err != nil {
		return uri, err
	}
	if uri.URIPattern == "" {
		return uri, errors.New("uri_pattern is empty")
	}
	if uri.MatchMode, err = readString("match_mode", members["match_mode"]); err != nil {
		return uri, err
	}
	if uri.MatchMode != "EXACT_LITERAL" && uri.MatchMode != "PREFIX_LITERAL" {
		return uri, fmt.Errorf("match_mode %q is neither EXACT_LITERAL nor PREFIX_LITERAL", uri.MatchMode)
	}
	modifier, given := members["cache_key_modifier_regex"]
	if !given {
		return uri, nil
	}
	if uri.CacheKeyModifierRegex, err = readString("cache_key_modifier_regex", modifier); err != nil {
		return uri, err
	}
	if uri.MatchMode == "EXACT_LITERAL" {
		return uri, errors.New("cache_key_modifier_regex is not valid with EXACT_LITERAL")
	}
	if strings.Contains(strings.TrimSuffix(uri.CacheKeyModifierRegex, "*"), "*") {
		return uri, errors.New("cache_key_modifier_regex may have one * and only as its suffix")
	}
	return uri, nil
}

// mayPurge checks the domain of a pattern against the customer's properties and the user's rights (service document,
// sections 4.4, 5 and 7).
func (c *call) mayPurge(uri PurgeURI) error {
	host, err := domainOf(uri.URIPattern)
	if err != nil {
		return err
	}
	if !configured(c.s.cfg.HostPatterns, host) {
		return errors.New("no configuration for a specified path")
	}
	covers := func(pattern string) bool { return covers(pattern, host) }
	if c.user.Domains != nil && !slices.ContainsFunc(c.user.Domains, covers) {
		return errors.New("user is not allowed to purge the domain")
	}
	return nil
}

// domainOf returns the domain part of a uri_pattern, whose protocol part may be omitted.
func domainOf(pattern string) (string, error) {
	rest := pattern
	protocol, after, found := strings.Cut(pattern, "://")
	if found && !strings.ContainsAny(protocol, "/?#.") { // otherwise the "://" is part of a path or query
		if !strings.EqualFold(protocol, "http") && !strings.EqualFold(protocol, "https") {
			return "", fmt.Errorf("protocol %q is neither http nor https", protocol)
		}
		rest = after
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return strings.ToLower(rest), nil
}

// configured reports whether a property has the domain. A wildcard in the domain is valid only if a host pattern has
// the same text (service document, section 4.4, rule 3).
func configured(patterns []string, host string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if strings.Contains(host, "*") {
			return strings.EqualFold(pattern, host)
		}
		return covers(pattern, host)
	})
}

// covers reports whether a host pattern matches the host. "*." stands for one or more leading labels.
func covers(pattern, host string) bool {
	pattern = strings.ToLower(pattern)
	if domain, ok := strings.CutPrefix(pattern, "*."); ok {
		labels, ok := strings.CutSuffix(host, "."+domain)
		return ok && labels != ""
	}
	return host != "" && pattern == host
}
