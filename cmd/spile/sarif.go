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
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifRegion struct {
	Line int `json:"startLine"`
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

// sarifPlace is what a finding is about: a column, or the table where there is none.
type sarifPlace struct {
	file, table, column string
	line                int // from 1, 0 where there is none
}

// add adds a finding.
func (l *sarifLog) add(rule, level, message string, at sarifPlace) {
	run := &l.Runs[0]
	what := sarifLogical{at.column, at.table + "." + at.column, "member"}
	if at.column == "" {
		what = sarifLogical{at.table, at.table, "type"}
	}
	where := sarifPhysical{Artifact: sarifArtifact{fileURI(at.file)}}
	if at.line > 0 {
		where.Region = &sarifRegion{at.line}
	}
	run.Results = append(run.Results, sarifResult{
		Rule: rule, Index: slices.IndexFunc(run.Tool.Driver.Rules, func(r sarifRule) bool { return r.ID == rule }),
		Level: level, Message: sarifText{message}, Locations: []sarifLocation{{where, []sarifLogical{what}}},
	})
}

// fileURI is a FILE argument as a URI, a relative one where the path is relative.
func fileURI(file string) string {
	path, err := localPath(file)
	if err != nil { // a URL of another scheme
		return shown(file)
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
