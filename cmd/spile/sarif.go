package main

import (
	"net/url"
	"path/filepath"
	"slices"
)

// sarifLog is a log in SARIF 2.1.0, the form in which code hosts take the findings of checks.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	Rule      string          `json:"ruleId"`
	Index     int             `json:"ruleIndex"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifLocation struct {
	Physical sarifPhysical  `json:"physicalLocation"`
	Logical  []sarifLogical `json:"logicalLocations"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifLogical struct {
	Name string `json:"name"`
	Full string `json:"fullyQualifiedName"`
	Kind string `json:"kind"`
}

func newSARIF(rules []sarifRule) *sarifLog {
	return &sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{sarifDriver{"spile", version(), rules}}, Results: []sarifResult{}}},
	}
}

// add adds a finding about a column of a table, in a file.
func (l *sarifLog) add(rule, level, message, file, table, column string) {
	run := &l.Runs[0]
	run.Results = append(run.Results, sarifResult{
		Rule: rule, Index: slices.IndexFunc(run.Tool.Driver.Rules, func(r sarifRule) bool { return r.ID == rule }),
		Level: level, Message: sarifText{message},
		Locations: []sarifLocation{{sarifPhysical{sarifArtifact{fileURI(file)}}, []sarifLogical{{column, table + "." + column, "member"}}}},
	})
}

// fileURI is a FILE argument as a URI, a relative one where the path is relative.
func fileURI(file string) string {
	path, err := localPath(file)
	if err != nil { // a URL of another scheme
		return file
	}
	u := &url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
		if u.Path[0] != '/' { // a drive
			u.Path = "/" + u.Path
		}
	}
	return u.String()
}
